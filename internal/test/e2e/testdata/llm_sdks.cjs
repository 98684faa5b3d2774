// The official SDKs for language models, unmodified and with their own retries off unless
// o.retries says how many there are, each behind the same few functions: plain and stream answer {text, usage, tool, header, meta},
// others is the texts that the SDK's other ways to ask bring, and problem says of an error
// how its SDK shows it.
const { OpenAI } = require('openai');
const { Anthropic } = require('@anthropic-ai/sdk');
const { GoogleGenAI, ApiError } = require('@google/genai');
const bedrock = require('@aws-sdk/client-bedrock-runtime');

const timeout = 30_000;

// gather reads a stream to its end: one says what an event adds.
async function gather(events, q, one) {
  const all = { text: '', pieces: 0 };
  for await (const e of events) {
    const { text, usage, tool, meta } = one(e);
    if (text) {
      all.text += text;
      all.pieces++;
      if (q.heard) q.heard(all.text);
    }
    all.usage = usage ?? all.usage;
    all.tool = tool ?? all.tool;
    all.meta = meta ?? all.meta;
  }
  return all;
}

const fetched = (response) => (name) => response.headers.get(name) ?? undefined;

function openai(base, o) {
  const c = new OpenAI({ apiKey: o.key, baseURL: base + '/v1', maxRetries: o.retries ?? 0, timeout });
  const body = (q) => ({ model: q.model, messages: [{ role: 'user', content: q.text }], ...q.body });
  const options = (q) => ({ headers: q.headers, signal: q.signal });
  const used = (u) => u && [u.prompt_tokens, u.completion_tokens];
  return {
    async plain(q) {
      const { data, response } = await c.chat.completions.create(body(q), options(q)).withResponse();
      const { content, tool_calls: calls } = data.choices[0].message;
      return { text: content, usage: used(data.usage), tool: calls?.[0].function.name, meta: data.metadata, header: fetched(response) };
    },
    async stream(q) {
      const more = { stream: true, stream_options: { include_usage: q.usage ?? true } };
      const { data, response } = await c.chat.completions.create({ ...body(q), ...more }, options(q)).withResponse();
      const all = await gather(data, q, (e) => {
        const delta = e.choices[0]?.delta;
        return { text: delta?.content, usage: used(e.usage), tool: delta?.tool_calls?.[0].function?.name, meta: e.metadata };
      });
      return { ...all, header: fetched(response) };
    },
    async others(q) {
      const helper = await c.chat.completions.stream(body(q)).finalChatCompletion();
      const ask = { model: q.model, input: q.text };
      const events = await gather(await c.responses.create({ ...ask, stream: true }), q, (e) => ({ text: e.type === 'response.output_text.delta' ? e.delta : '' }));
      return [
        helper.choices[0].message.content, (await c.responses.create(ask)).output_text, events.text,
        (await c.responses.stream(ask).finalResponse()).output_text,
      ];
    },
    problem: (e) => ({ kind: e.constructor.name, own: e instanceof OpenAI.APIError, status: e.status, after: Number(e.headers?.get('retry-after')), text: e.message }),
  };
}

function anthropic(base, o) {
  const c = new Anthropic({ apiKey: o.key, baseURL: base, maxRetries: o.retries ?? 0, timeout });
  const body = (q) => ({ model: q.model, max_tokens: 1000, messages: [{ role: 'user', content: q.text }], ...q.body });
  const options = (q) => ({ headers: q.headers, signal: q.signal });
  return {
    async plain(q) {
      const { data, response } = await c.messages.create(body(q), options(q)).withResponse();
      const [first] = data.content;
      return { text: first.text, usage: data.usage && [data.usage.input_tokens, data.usage.output_tokens], tool: first.name, meta: data.metadata, header: fetched(response) };
    },
    async stream(q) {
      const { data, response } = await c.messages.create({ ...body(q), stream: true }, options(q)).withResponse();
      let input;
      const all = await gather(data, q, (e) => {
        input = e.message?.usage?.input_tokens ?? input;
        const usage = e.type === 'message_delta' && e.usage ? [input, e.usage.output_tokens] : undefined;
        return { text: e.delta?.text, usage, tool: e.content_block?.name, meta: e.message?.metadata };
      });
      return { ...all, header: fetched(response) };
    },
    others: async (q) => [await c.messages.stream(body(q)).finalText()],
    problem: (e) => ({ kind: e.constructor.name, own: e instanceof Anthropic.APIError, status: e.status, after: Number(e.headers?.get('retry-after')), text: e.message }),
  };
}

function gemini(base, o) {
  const c = new GoogleGenAI({ apiKey: o.key, httpOptions: { baseUrl: base, timeout } });
  const body = (q) => ({ model: q.model, contents: q.text, config: { httpOptions: { headers: q.headers }, abortSignal: q.signal, ...q.body } });
  const used = (u) => u && [u.promptTokenCount, u.candidatesTokenCount];
  const said = (a) => (a.functionCalls ? { tool: a.functionCalls[0].name } : { text: a.text });
  const of = (answer) => (name) => answer?.sdkHttpResponse?.headers?.[name.toLowerCase()];
  return {
    async plain(q) {
      const a = await c.models.generateContent(body(q));
      return { ...said(a), usage: used(a.usageMetadata), header: of(a) };
    },
    async stream(q) {
      let last;
      const all = await gather(await c.models.generateContentStream(body(q)), q, (e) => {
        last = e;
        return { ...said(e), usage: used(e.usageMetadata) };
      });
      return { ...all, header: of(last) };
    },
    async others(q) {
      const chat = c.chats.create({ model: q.model });
      const whole = await chat.sendMessage({ message: q.text });
      const events = await gather(await chat.sendMessageStream({ message: q.text }), q, (e) => ({ text: e.text }));
      return [whole.text, events.text];
    },
    // It has one class of errors, and no headers in it.
    problem: (e) => ({ kind: e.constructor.name, own: e instanceof ApiError, status: e.status, after: Number(/"retryDelay":"([0-9.]+)s"/.exec(e.message)?.[1]), text: e.message }),
  };
}

function converse(base, o) {
  const c = new bedrock.BedrockRuntimeClient({
    region: 'us-east-1', endpoint: base, maxAttempts: 1 + (o.retries ?? 0), credentials: { accessKeyId: o.key, secretAccessKey: 'of the client', sessionToken: 'of the client' },
  });
  const body = (q) => ({ modelId: q.model, messages: [{ role: 'user', content: [{ text: q.text }] }], ...q.body });
  const used = (u) => u && [u.inputTokens, u.outputTokens];
  // send has the headers of request and answer, for which commands have no room.
  async function send(command, q) {
    let header;
    command.middlewareStack.add((next) => async (a) => {
      Object.assign(a.request.headers, q.headers);
      return next(a);
    }, { step: 'build' });
    command.middlewareStack.add((next) => async (a) => {
      const { response } = await next(a);
      header = (name) => response.headers[name.toLowerCase()];
      return { response };
    }, { step: 'deserialize', priority: 'low' });
    const data = await c.send(command, { abortSignal: q.signal });
    return { data, header };
  }
  return {
    async plain(q) {
      const { data, header } = await send(new bedrock.ConverseCommand(body(q)), q);
      const [first] = data.output.message.content;
      return { text: first.text, usage: used(data.usage), tool: first.toolUse?.name, meta: data.additionalModelResponseFields, header };
    },
    async stream(q) {
      const { data, header } = await send(new bedrock.ConverseStreamCommand(body(q)), q);
      const all = await gather(data.stream, q, (e) => ({
        text: e.contentBlockDelta?.delta?.text, usage: used(e.metadata?.usage), tool: e.contentBlockStart?.start?.toolUse?.name,
        meta: e.messageStop?.additionalModelResponseFields,
      }));
      return { ...all, header };
    },
    async others(q) {
      const ask = {
        modelId: q.model, contentType: 'application/json',
        body: JSON.stringify({ anthropic_version: 'bedrock-2023-05-31', max_tokens: 1000, messages: [{ role: 'user', content: q.text }] }),
      };
      const read = (bytes) => JSON.parse(Buffer.from(bytes));
      const { body: whole } = await c.send(new bedrock.InvokeModelCommand(ask));
      const { body: events } = await c.send(new bedrock.InvokeModelWithResponseStreamCommand(ask));
      return [read(whole).content[0].text, (await gather(events, q, (e) => ({ text: read(e.chunk.bytes).delta?.text }))).text];
    },
    problem: (e) => ({
      kind: e.name, own: e instanceof bedrock.BedrockRuntimeServiceException, status: e.$metadata?.httpStatusCode,
      after: Number(e.$response?.headers?.['retry-after']), text: e.message,
    }),
    // leave is how a program leaves the middle of a stream whose header it has.
    leave: () => c.destroy(),
  };
}

const schema = { type: 'object', properties: { where: { type: 'string' } } };

module.exports = [
  {
    name: 'openai', make: openai, model: 'gpt-4o', price: [2.5, 10],
    tools: { tools: [{ type: 'function', function: { name: 'look', parameters: schema } }], tool_choice: 'required' },
  },
  {
    name: 'anthropic', make: anthropic, model: 'claude-3-haiku-20240307', price: [0.25, 1.25],
    tools: { tools: [{ name: 'look', input_schema: schema }], tool_choice: { type: 'any' } },
  },
  {
    name: 'gemini', make: gemini, model: 'gemini-2.5-flash', price: [0.3, 2.5],
    tools: { tools: [{ functionDeclarations: [{ name: 'look' }] }], toolConfig: { functionCallingConfig: { mode: 'ANY' } } },
  },
  {
    name: 'bedrock', make: converse, model: 'anthropic.claude-3-haiku-20240307-v1:0', price: [0.25, 1.25],
    tools: { toolConfig: { tools: [{ toolSpec: { name: 'look', inputSchema: { json: schema } } }], toolChoice: { any: {} } } },
  },
];
