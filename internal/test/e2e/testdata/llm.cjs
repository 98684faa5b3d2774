// Groups of calls that programs make through weir with the SDKs of llm_sdks.cjs, each
// case with all four:
//
//	node llm.cjs GROUP WEIR SIMULATOR
const sdks = require('./llm_sdks.cjs');

const [group, weir, sim] = process.argv.slice(2);

let failed = 0;

// attempt runs one case and says how it went.
async function attempt(what, f) {
  const begun = Date.now();
  try {
    await f();
    console.log(`${what}: good after ${Date.now() - begun} ms`);
  } catch (e) {
    failed++;
    console.log(`${what}: ${e.stack ?? e}`);
  }
}

// each runs a case with every SDK at once. s.client makes one for an upstream, and s.named
// is a model of that name that only this SDK asks for.
function each(what, f) {
  return Promise.all(sdks.map((s) => {
    const of = {
      ...s,
      named: (name) => (s.name === 'bedrock' ? `anthropic.${name}-v1:0` : `${s.name}-${name}`),
      client: (upstream = '', key = 'AK-CALLER-1', more = {}) => s.make(`${weir}/${s.name}${upstream}`, { key, ...more }),
    };
    return attempt(`${s.name}: ${what}`, () => f(of));
  }));
}

function want(what, got, wanted) {
  const [a, b] = [JSON.stringify(got), JSON.stringify(wanted)];
  if (a !== b) throw new Error(`${what} is ${a}, want ${b}`);
}

function sure(what, ok, ...more) {
  if (!ok) throw new Error([what, ...more.map((m) => JSON.stringify(m))].join(' '));
}

// problem is the error with which a call must end.
async function problem(call) {
  let a;
  try {
    a = await call();
  } catch (e) {
    return e;
  }
  throw new Error(`there is no error, but ${JSON.stringify(a)}`);
}

// The simulator.
async function control(method, path, body) {
  const r = await fetch(sim + '/_sim/' + path, { method, body: body && JSON.stringify(body) });
  sure(`${method} ${path}`, r.ok, r.status, await (r.ok ? '' : r.text()));
  return r;
}
const fault = (f) => control('POST', 'faults', f);
const state = async () => (await control('GET', 'state')).json();
const asked = async (model) => (await state()).attempts.filter((a) => a.model === model);

const { setTimeout: sleep } = require('node:timers/promises');

// until waits for something that comes about elsewhere.
async function until(what, f) {
  const end = Date.now() + 20_000;
  while (!(await f())) {
    sure(what, Date.now() < end);
    await sleep(10);
  }
}

// tier is what an answer says of where it came from.
const tier = (a) => ['tier', 'confidence', 'degraded'].map((n) => a.header('x-weir-' + n)).join(' ');

const story = 'tell me a story that is long enough to come in pieces';
const both = ['plain', 'stream'];

const groups = {
  async through() {
    await each('a plain call', async (s) => {
      const a = await s.client().plain({ model: s.model, text: 'hällo 世界' });
      want('the text', a.text, `${s.model} heard: hällo 世界`);
      sure('usage', a.usage[0] > 0 && a.usage[1] > 0, a.usage);
      const cost = (a.usage[0] * s.price[0] + a.usage[1] * s.price[1]) / 1e6;
      sure('the cost', Math.abs(parseFloat(a.header('x-weir-cost')) - cost) < 1e-9 && / USD$/.test(a.header('x-weir-cost')), a.header('x-weir-cost'), cost);
      sure('the estimate', Number(a.header('x-weir-tokens-estimated')) > 0);
    });
    await each('a stream', async (s) => {
      const a = await s.client().stream({ model: s.model, text: story });
      want('the text', a.text, `${s.model} heard: ${story}`);
      sure('pieces and usage', a.pieces > 5 && a.usage[0] > 0 && a.usage[1] > 0, a);
    });
    await each('a tool', async (s) => {
      for (const way of both) want(way, (await s.client()[way]({ model: s.model, text: 'hi', body: s.tools })).tool, 'look');
    });
    await each('other ways to ask', async (s) => {
      const all = await s.client().others({ model: s.model, text: story });
      all.forEach((text, i) => want(`text ${i}`, text, `${s.model} heard: ${story}`));
    });
    await attempt('a stream without usage', async () => {
      const [s] = sdks;
      const a = await s.make(`${weir}/openai`, { key: 'k' }).stream({ model: s.model, text: story, usage: false });
      want('the text', a.text, `${s.model} heard: ${story}`);
      want('usage that nobody asked for', a.usage, undefined);
    });
    await Promise.all(both.map((way) => each(`throttled twice, ${way}`, async (s) => {
      const model = s.named('throttled-' + way);
      await fault({ kind: 'throttle', model, times: 2, hint: '1s' });
      const begun = Date.now();
      const a = await s.client()[way]({ model, text: 'hi' });
      want('the text', a.text, `${model} heard: hi`);
      want('attempts', (await asked(model)).map((x) => x.status), [429, 429, 200]);
      const took = Date.now() - begun; // Bedrock gives no hints
      sure('the hints were waited for', s.name === 'bedrock' || took >= 1990, took);
    })));
  },

  async cascade() {
    const known = 'What is the capital of weirs?';
    await each('the first tier', async (s) => {
      for (const way of both) {
        const a = await s.client()[way]({ model: s.named('first'), text: known });
        want('the tier', tier(a), 'primary 1 false');
        want('the text', a.text, `${s.named('first')} heard: ${known}`);
      }
    });
    await each('an error inside a stream', async (s) => {
      await fault({ kind: 'stream_error', model: s.named('first') });
      const a = await s.client('-errors').stream({ model: s.named('first'), text: 'hello' });
      want('the tier', tier(a), 'second 0.8 true');
      want('the text', a.text, `${s.model} heard: hello`);
    });
    await each('a stream that is cut', async (s) => {
      for (const f of [{ kind: 'cut', events: 3 }, { kind: 'reset', where: 'after_content', events: 3 }]) {
        await fault({ ...f, model: s.named('cut') });
        let heard = '';
        const e = await problem(() => s.client('-errors').stream({ model: s.named('cut'), text: story, heard: (text) => { heard = text; } }));
        sure('the beginning came', heard !== '' && `${s.named('cut')} heard: ${story}`.startsWith(heard), heard);
        sure('it is told', /ended before the response was complete/.test(e.message), e.message);
      }
    });
    await each('a model that is silent', async (s) => {
      await Promise.all(['before_headers', 'after_headers'].map(async (where) => {
        const model = s.named('silent-' + where);
        await fault({ kind: 'hang', where, model });
        const a = await s.client('-hasty').stream({ model, text: 'hello' });
        want('the tier', tier(a), 'second 0.8 true');
        want('the text', a.text, `${s.model} heard: hello`);
      }));
    });
    // From here on it stays broken.
    await each('the second tier', async (s) => {
      await fault({ kind: 'error', status: 500, model: s.named('first'), times: -1 });
      for (const way of both) {
        const a = await s.client()[way]({ model: s.named('first'), text: `hello, ${way}` });
        want('the tier', tier(a), 'second 0.8 true');
        want('the text', a.text, `${s.model} heard: hello, ${way}`);
      }
    });
    await each('everything down', async (s) => {
      await fault({ kind: 'error', status: 503, model: s.model, times: -1 });
      const c = s.client();
      const asks = [
        [known, 'cached 0.5 true', `${s.named('first')} heard: ${known}`],
        ['What are your opening hours?', 'static 0.3 true', 'Our stores are open from 10:00'],
        ['送料はいくらですか', 'static 0.3 true', '通常配送の送料は500円'],
        ['xyzzy plugh frobnicate', 'message 0.1 true', 'We are sorry.'],
      ];
      for (const way of both) {
        for (const [text, from, says] of asks) {
          const a = await c[way]({ model: s.named('first'), text });
          want('the tier', tier(a), from);
          sure('the text', a.text.startsWith(says), a.text);
          want('the cache', a.header('x-weir-cache'), from.startsWith('cached') ? 'old' : 'miss');
          sure('no header of a tier that failed', !a.header('x-request-id')?.startsWith('req_sim') && !a.header('retry-after'));
          // Gemini's answers have no room for it, and what was kept is as the model gave it.
          if (s.name !== 'gemini' && !from.startsWith('cached')) want('in the answer', a.meta?.weir_tier, from.split(' ')[0]);
        }
      }
    });
    await each('an SDK that would try again', async (s) => {
      if (s.name === 'gemini' || s.name === 'bedrock') return; // they do not heed whether they should
      for (const f of [{ kind: 'error', status: 500 }, { kind: 'throttle', no_hint: true }, { kind: 'reset' }]) {
        const model = s.named('again-' + f.kind);
        await fault({ ...f, model, times: -1 });
        await problem(() => s.client('-brief', 'AK', { retries: 3 }).plain({ model, text: 'hi' }));
        want(`attempts after ${f.kind}`, (await asked(model)).length, 3);
      }
    });
    await each('other ways to ask', async (s) => {
      const all = await s.client().others({ model: s.model, text: 'Do you sell gift cards?' });
      for (const text of all) sure('the text', /gift card/i.test(text), all);
    });
    await attempt('a hundred calls while everything is down', async () => {
      const [s] = sdks;
      const c = s.make(`${weir}/openai-patient`, { key: 'k' });
      for (const model of ['dead', 'dead-too']) await fault({ kind: 'error', status: 503, model, times: -1 });
      const begun = Date.now();
      for (let i = 0; i < 100; i++) want('the text', (await c.plain({ model: 'dead', text: `${i}` })).text, 'We are sorry.');
      const n = (await asked('dead')).length + (await asked('dead-too')).length;
      sure('attempts', n <= 30 + Math.max(0, Date.now() - begun - 10_000) / 300, n);
      console.log(`${n} attempts for 100 calls in ${Date.now() - begun} ms`);
    });
  },

  async patience() {
    // Nothing says how long the SDK waits: 30 s.
    await Promise.all(['before_headers', 'after_headers'].map((where) => each(`a model that hangs, ${where}`, async (s) => {
      await Promise.all(both.map(async (way) => {
        const model = s.named(`hangs-${where}-${way}`);
        await fault({ kind: 'hang', where, model, times: -1 });
        const begun = Date.now();
        const a = await s.client()[way]({ model, text: 'hello' });
        want('the tier', tier(a), 'second 0.7 true');
        want('the text', a.text, `${s.model} heard: hello`);
        sure('in time', Date.now() - begun < 26_000, Date.now() - begun);
      }));
    })));
  },

  async cache() {
    await each('the second time', async (s) => {
      const q = { model: s.named('kept'), text: 'Who keeps this?' };
      const [first, second] = [await s.client().plain(q), await s.client().plain(q)];
      want('the first', first.header('x-weir-cache'), 'miss');
      want('the second', second.header('x-weir-cache'), 'hit');
      want('the text', second.text, first.text);
      sure('its age', Number(second.header('age')) >= 0, second.header('age'));
      const streamed = await s.client().stream(q);
      want('streamed', [streamed.header('x-weir-cache'), streamed.text], ['hit', first.text]);
      want('calls of the provider', (await asked(q.model)).length, 1);
    });
    await each('a stream, and then plain', async (s) => {
      const q = { model: s.named('streamed'), text: story };
      const [first, second, third] = [await s.client().stream(q), await s.client().stream(q), await s.client().plain(q)];
      want('where from', [first, second, third].map((a) => a.header('x-weir-cache')), ['miss', 'hit', 'hit']);
      want('the texts', [second.text, third.text], [first.text, first.text]);
      want('calls of the provider', (await asked(q.model)).length, 1);
    });
    await each('another key', async (s) => {
      const q = { model: s.named('secret'), text: 'What do I have in my pocket?' };
      for (const key of ['AK-CALLER-1', 'AK-CALLER-2']) want(key, (await s.client('', key).plain(q)).header('x-weir-cache'), 'miss');
      for (const key of ['AK-CALLER-1', 'AK-CALLER-2']) want(key, (await s.client('', key).plain(q)).header('x-weir-cache'), 'hit');
      want('calls of the provider', (await asked(q.model)).length, 2);
    });
    await each('what is no answer', async (s) => {
      const model = s.named('broken');
      for (const f of [{ kind: 'error', status: 500 }, { kind: 'throttle', no_hint: true }, { kind: 'bad_json' }]) {
        await fault({ ...f, model });
        const q = { model, text: `What about ${f.kind}?` };
        await problem(() => s.client('-once').plain(q));
        want(`after ${f.kind}`, (await s.client('-once').plain(q)).header('x-weir-cache'), 'miss');
      }
    });
  },

  async callers() {
    const limited = { openai: 'RateLimitError', anthropic: 'RateLimitError', gemini: 'ApiError', bedrock: 'ThrottlingException' };
    await each('two calls for each user', async (s) => {
      for (const user of [`${s.name}-ann`, `${s.name}-bob`]) {
        const q = () => ({ model: s.model, text: 'hi', headers: { 'X-User': user, 'X-Tenant': `tenant ${Math.random()}` } });
        for (const way of both) {
          const a = await s.client()[way](q());
          want('the text', a.text, `${s.model} heard: hi`);
        }
        for (const way of both) {
          const e = s.client().problem(await problem(() => s.client()[way](q())));
          want('the error', [e.kind, e.own, e.status], [limited[s.name], true, 429]);
          sure('when to come back', e.after > 0 && e.after <= 1980, e.after);
          sure('who refused', /limit user .*2\/h/.test(e.text) && e.text.includes(user), e.text);
        }
      }
    });
    await each('a quota for each day', async (s) => {
      let [good, e] = [0];
      while (!e) { // a day may end meanwhile
        const headers = { 'X-Tenant': s.name, 'X-User': `${s.name}-${good}` };
        await s.client().plain({ model: s.model, text: 'hi', headers }).then(() => good++, (x) => { e = s.client().problem(x); });
        sure('it is held', good <= 4);
      }
      sure('two were good', good >= 2, good);
      const kind = s.name === 'bedrock' ? 'ServiceQuotaExceededException' : limited[s.name];
      want('the error', [e.kind, e.own], [kind, true]);
      sure('the status', e.status === (s.name === 'bedrock' ? 400 : 429), e.status);
      sure('it is called a quota', /quota/i.test(e.text) && /tenant-day/.test(e.text), e.text);
    });
  },

  // The same callers, when the file has been read again.
  async again() {
    await each('a user who has had it all', async (s) => {
      const headers = { 'X-User': `${s.name}-ann`, 'X-Tenant': `${s.name}-of-ann` };
      const e = s.client().problem(await problem(() => s.client().plain({ model: s.model, text: 'hi', headers })));
      want('the error', [e.own, e.status], [true, 429]);
    });
  },

  async keys() {
    await each('keys of weir', async (s) => {
      for (const way of both) {
        const a = await s.client('', 'sk-of-the-caller')[way]({ model: s.model, text: 'a secret question' });
        want('the text', a.text, `${s.model} heard: a secret question`);
      }
      await fault({ kind: 'error', status: 500, model: s.named('down') });
      const a = await s.client('', 'sk-of-the-caller').plain({ model: s.named('down'), text: 'a secret question' });
      want('the tier', tier(a), 'other 0.7 true');
      want('the text', a.text, `${s.named('down')} heard: a secret question`);
    });
  },

  async refusals() {
    const limited = { openai: 'RateLimitError', anthropic: 'RateLimitError', gemini: 'ApiError', bedrock: 'ThrottlingException' };
    const unavailable = { openai: 'InternalServerError', anthropic: 'ServiceUnavailableError', gemini: 'ApiError', bedrock: 'ServiceUnavailableException' };
    const shown = async (s, upstream, way, q) => {
      const c = s.client(upstream);
      return c.problem(await problem(() => c[way]({ text: 'hi', ...q })));
    };
    await each('the limit', async (s) => {
      const model = s.named('limited');
      await s.client('-tight').plain({ model, text: 'hi' });
      for (const way of both) {
        const e = await shown(s, '-tight', way, { model });
        want('the error', [e.kind, e.own, e.status], [limited[s.name], true, 429]);
        sure('when to come back', e.after > 0, e.after);
      }
    });
    await each('the circuit', async (s) => {
      const model = s.named('circuit');
      await fault({ kind: 'error', status: 500, model, times: 1 });
      const first = await shown(s, '-frail', 'plain', { model });
      sure('the error of the provider', first.own && first.status === 500, first);
      for (const way of both) {
        const e = await shown(s, '-frail', way, { model });
        want('the error', [e.kind, e.own, e.status], [unavailable[s.name], true, 503]);
      }
      want('calls of the provider', (await asked(model)).length, 1);
    });
    await each('no model of that name', async (s) => {
      const statuses = { openai: 404, anthropic: 404, gemini: 404, bedrock: 400 };
      for (const way of both) {
        const e = await shown(s, '', way, { model: s.named('unknown') });
        want('the error', [e.own, e.status], [true, statuses[s.name]]);
        sure('it is the provider who says it', !/weir/i.test(e.text), e.text);
      }
      want('calls of the provider', (await asked(s.named('unknown'))).length, 2);
    });
    await each('a body that is no call', async (s) => {
      const body = { openai: { model: 7 }, anthropic: { max_tokens: -1 }, gemini: { maxOutputTokens: 'many' }, bedrock: { messages: 7 } }[s.name];
      const e = await shown(s, '', 'plain', { model: s.named('limited'), body });
      sure('the error', e.own && e.status === 400, e);
    });
    await each('a body that is not JSON', async (s) => {
      const paths = { openai: '/v1/chat/completions', anthropic: '/v1/messages', gemini: `/v1beta/models/${s.model}:generateContent`, bedrock: `/model/${s.model}/converse` };
      for (const body of ['{"model": "x", ', 'hello', '']) {
        const r = await fetch(`${weir}/${s.name}${paths[s.name]}`, { method: 'POST', body, headers: { 'Content-Type': 'application/json', Authorization: 'Bearer k' } });
        const text = await r.text();
        want(body, r.status, 400);
        const e = JSON.parse(text);
        sure('it says what is wrong', /body/.test(s.name === 'bedrock' ? e.message : e.error.message) && !text.includes('hello'), text);
      }
    });
  },

  async strange() {
    await each('a caller who leaves', async (s) => {
      const model = s.named('long');
      await fault({ kind: 'never_ending', model, times: 2 });
      for (let i = 0; i < 2; i++) {
        const c = s.client();
        const left = new AbortController();
        const heard = () => { left.abort(); c.leave?.(); };
        const a = await c.stream({ model, text: story, signal: left.signal, heard }).catch((e) => e); // some SDKs end without an error
        sure('it was left', left.signal.aborted, a);
      }
      await until('the provider is told', async () => (await asked(model)).filter((a) => a.left).length === 2);
      const a = await s.client().stream({ model, text: 'still there?' });
      want('the next', a.text, `${model} heard: still there?`);
    });
    await each('a caller who waits no longer', async (s) => {
      for (const way of both) {
        const model = s.named(`silent-${way}`);
        await fault({ kind: 'hang', model });
        const left = new AbortController();
        const call = problem(() => s.client()[way]({ model, text: 'hi', signal: left.signal }));
        await until('the provider is asked', async () => (await asked(model)).length === 1);
        left.abort();
        await call;
        await until('the provider is told', async () => (await asked(model)).every((a) => a.left));
      }
    });
    await until('no stream is open', async () => (await state()).open === 0);
    await each('a stream that never ends', async (s) => {
      const model = s.named('endless');
      await fault({ kind: 'never_ending', model });
      const e = await problem(() => s.client('-short').stream({ model, text: story }));
      sure('the error', /too long/.test(e.message), e.message);
      await until('the provider is told', async () => (await asked(model)).every((a) => a.left));
    });
    await until('no stream is open', async () => (await state()).open === 0);
    await each('streams at once, half of which are left', async (s) => {
      const c = s.client();
      const model = s.named('many');
      await Promise.all(Array.from({ length: 8 }, async (_, i) => {
        const stays = i % 2 === 0;
        const left = new AbortController();
        const a = await c.stream({ model, text: `${story} ${i}`, signal: left.signal, heard: stays ? undefined : () => left.abort() }).catch((e) => { if (stays) throw e; });
        if (stays) want('the text', a.text, `${model} heard: ${story} ${i}`);
      }));
    });
    await until('no stream is open', async () => (await state()).open === 0);
    await each('a prompt that is longer than the limit', async (s) => {
      const q = { model: s.named('long'), text: 'word '.repeat(2000) };
      const { text } = await s.client('-small').plain(q);
      sure('the text', text.startsWith(`${q.model} heard: word word`), text.length);
    });
    await each('usage that cannot be, or none', async (s) => {
      const model = s.named('odd');
      for (const f of [{ kind: 'wrong_usage' }, { kind: 'no_usage' }, { kind: 'wrong_usage', factor: 20 }]) {
        for (const way of both) {
          await fault({ ...f, model });
          const a = await s.client('-tokens')[way]({ model, text: story });
          want(`the text with ${f.kind}, ${way}`, a.text, `${model} heard: ${story}`);
        }
      }
      const a = await s.client('-tokens').plain({ model, text: 'and now?' });
      want('the next', a.text, `${model} heard: and now?`);
    });
  },

  async crowd() {
    const [s] = sdks;
    const c = s.make(`${weir}/openai`, { key: 'k' });
    await attempt('sixty at once', async () => {
      const begun = performance.now();
      const all = await Promise.all(Array.from({ length: 60 }, (_, i) => c[both[i % 2]]({ model: s.model, text: `call ${i}` })));
      all.forEach((a, i) => want(`call ${i}`, a.text, `${s.model} heard: call ${i}`));
      const { refused, granted } = await state();
      want('refused and granted', [refused, granted], [0, 60]);
      const took = performance.now() - begun;
      sure('they went one after the other', took >= (60 - 3) * 50, took);
      console.log(`60 calls in ${took} ms`);
    });
  },
};

groups[group]().then(() => process.exit(failed ? 1 : 0), (e) => { console.error(e); process.exit(1); });
