"""Text generation: prefill → sample → detokenize → stop? → decode_one → sample → …

- A `Decoder` holds the network's memory of a sequence (the KV cache). `prefill` processes the whole prompt at
  once, `decode_one` one new token; both return the logits of the next token (`decoder.py`).
- A `Sampler` turns a row of logits into the next token, with one uniform random number per step, according to
  the options declared in `sampling.py` (`sampler.py`).
- A `Detokenizer` turns tokens into whole characters and ends the text at a stop string or an end token
  (`detokenizer.py`).

`generation.py` runs this loop for one prompt. For many requests, the `Scheduler` batches continuously. Its
`BatchDecoder` has a fixed number of slots. A waiting prompt is prefilled chunk by chunk, between the decoding
steps of the running sequences. Each sample then takes a free slot, grows by a token per step, and frees its
slot when it finishes. A sequence's tokens do not depend on what else is in the batch (`scheduler.py`,
`batch_decoder.py`). The `Engine` runs a scheduler in a thread and accepts requests from any other thread
(`engine.py`).

`scoring.py` computes the log-probabilities of given texts, as one padded batch. The scheduler does so for the prompts
of requests that ask for it, in chunks between two decoding steps (`scoring_queue.py`).

The other decoders implement the same steps: `classic_decoders.py` for recurrent networks and n-gram models,
`ensemble_decoders.py` for ensembles, and `quantized_decoder.py` for int8 networks on the CPU.

On CUDA, `cuda_decoder.py` samples on the device and replays one CUDA graph per step, with decoders that are kept from
one text to the next; `cuda_batch_decoder.py` does so for the scheduler. Both launch the kernels of a step
(`cuda_step.py`): products and norms (`cuda_kernels.py`), attention (`cuda_attention.py`) and sampling
(`cuda_sampling.py`). Requests that they do not support are decoded without CUDA graphs.
"""
