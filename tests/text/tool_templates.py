"""Chat templates with tools, in the manner of published ones."""

# Tools in the system message, calls between tags, results as user messages.
TAGS = """
{%- if tools %}<|im_start|>system
{% if messages[0].role == 'system' %}{{ messages[0].content + '\n\n' }}{% endif %}Functions:
{%- for tool in tools %}{{ '\n' + (tool | tojson) }}{% endfor %}<|im_end|>
{% elif messages[0].role == 'system' %}<|im_start|>system
{{ messages[0].content }}<|im_end|>
{% endif %}
{%- for m in messages %}
{%- if m.role == 'tool' %}<|im_start|>user
<tool_response>
{{ m.content }}
</tool_response><|im_end|>
{% elif m.role != 'system' or not loop.first %}
{{- '<|im_start|>' + m.role }}
{%- if m.content %}{{ '\n' + m.content }}{% endif %}
{%- for call in m.tool_calls or [] %}
{{- '\n<tool_call>\n{"name": "' + call.function.name + '", "arguments": ' }}
{{- call.function.arguments | tojson }}{{ '}\n</tool_call>' }}
{%- endfor %}<|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"""
# The arguments one by one, which only works for objects.
ITEMS = TAGS.replace(
    "{{- call.function.arguments | tojson }}",
    """{{- '{' }}{% for key, value in call.function.arguments.items() %}
{{- (key | tojson) + ': ' + (value | tojson) }}{% endfor %}{{- '}' }}""",
)
# A thought before every reply in the history, but not in the prompt.
THOUGHT = TAGS.replace(
    "{%- if m.content %}",
    "{%- if m.role == 'assistant' %}{{ '\n<think>\n\n</think>\n' }}{% endif %}{%- if m.content %}",
)
# A call is the whole reply, and its arguments are called parameters.
WHOLE = """{{ bos_token }}
{%- if tools %}{{ '[S]' + (tools | tojson(indent=4)) + '[E]' }}{% endif %}
{%- for m in messages %}
{%- if m.tool_calls %}
{%- if m.tool_calls | length != 1 %}{{ raise_exception('one call at a time') }}{% endif %}
{%- set call = m.tool_calls[0].function %}
{{- '[S]assistant\n{"name": "' + call.name + '", "parameters": ' + (call.arguments | tojson) + '}[E]' }}
{%- else %}{{ '[S]' + m.role + '\n' + m.content | trim + '[E]' }}{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '[S]assistant\n' }}{% endif %}"""
# A special token begins a call, which has an id of nine characters.
SPECIAL = """{{ bos_token }}
{%- for m in messages %}
{%- if m.role == 'user' %}
{%- if tools and loop.last %}{{ '[TOOLS]' + (tools | tojson) }}{% endif %}{{ '[INST]' + m.content + '[/INST]' }}
{%- elif m.role == 'tool' %}{{ '[RESULT]' + m.content + '[/RESULT]' }}
{%- elif m.tool_calls %}{{ '[CALLS] [' }}
{%- for call in m.tool_calls %}
{%- if call.id | length != 9 %}{{ raise_exception('an id has 9 characters') }}{% endif %}
{{- (call.function | tojson)[:-1] + ', "id": "' + call.id + '"}' }}
{%- if not loop.last %}, {% endif %}{% endfor %}{{ ']' + eos_token }}
{%- else %}{{ m.content + eos_token }}{% endif %}
{%- endfor %}"""
WITH_TOOLS = {"tags": TAGS, "items": ITEMS, "thought": THOUGHT, "whole": WHOLE, "special": SPECIAL}
SPECIALS = [
    "<|im_start|>",
    "<|im_end|>",
    "[S]",
    "[E]",
    "[TOOLS]",
    "[INST]",
    "[/INST]",
    "[RESULT]",
    "[/RESULT]",
    "[CALLS]",
]

ROLES = """{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}
{{- '<|im_start|>assistant' }}"""
PYTHON = TAGS.replace("call.function.arguments | tojson", "call.function.arguments | string")
ALTERNATING = """{% for m in messages %}{% if m.role != ['user', 'assistant'][loop.index0 % 2] %}
{{- raise_exception('roles must alternate') }}{% endif %}{{ '[S]' + m.content + '[E]' }}{% endfor %}"""
WITHOUT_TOOLS = {"roles": ROLES, "python": PYTHON, "alternating": ALTERNATING}
