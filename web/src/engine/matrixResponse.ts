/** A response in the format that `decodeMatrices` reads. */
export function matrixResponse(parts: { values: Float32Array; shape: number[] }[]): Response {
  const shapes = parts.map(({ shape }) => shape.join(",")).join(";");
  return new Response(new Blob(parts.map(({ values }) => values as Float32Array<ArrayBuffer>)), {
    headers: { "X-Shape": shapes },
  });
}
