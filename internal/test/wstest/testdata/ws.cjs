// The library ws on both sides of weir:
//
//	node ws.cjs serve           prints "serving HOST:PORT", and serves until its standard input ends
//	node ws.cjs call URL MOST   has a case for each thing that passes, with messages of MOST bytes at most
const { WebSocketServer, WebSocket } = require('ws');

function serve() {
  const server = new WebSocketServer({
    host: '127.0.0.1', port: 0, perMessageDeflate: true,
    handleProtocols: (offered) => (offered.has('chat.v2') ? 'chat.v2' : false),
    verifyClient: ({ req }, done) => done(!req.url.endsWith('/no'), 403, 'we are closed', { 'X-Why': 'closed' }),
  });
  server.on('listening', () => console.log(`serving 127.0.0.1:${server.address().port}`));
  server.on('connection', (c) => {
    c.on('error', () => {});
    c.on('message', (data, binary) => {
      const text = binary ? '' : data.toString();
      if (text.startsWith('close ')) return c.close(Number(text.slice(6)), 'as asked');
      if (text === 'vanish') return c.terminate();
      if (text === 'ping') return c.ping('x', undefined, () => c.once('pong', () => c.send('pong')));
      c.send(data, { binary });
    });
  });
  process.stdin.on('end', () => process.exit(0)).resume();
}

async function call(url, most) {
  let failed = 0;
  const attempt = async (what, f) => {
    try {
      await f();
      console.log(`${what}: good`);
    } catch (e) {
      failed++;
      console.log(`${what}: ${e.stack ?? e}`);
    }
  };
  const open = (path = '', protocols = [], options = {}) => new Promise((resolve, reject) => {
    const c = new WebSocket(url + path, protocols, options);
    c.on('open', () => resolve(c));
    c.on('error', reject);
  });
  const next = (c, event = 'message') => new Promise((resolve, reject) => {
    c.once(event, (...args) => resolve(args));
    if (event !== 'close') c.once('close', (code) => reject(new Error(`closed with ${code}`)));
  });
  const same = (got, want) => { if (got !== want) throw new Error(`got ${got}, want ${want}`); };
  const echo = async (c, data, binary) => {
    c.send(data, { binary });
    const [back, wasBinary] = await next(c);
    same(wasBinary, binary);
    same(Buffer.compare(back, Buffer.from(data)), 0);
  };
  const c = await open();
  await attempt('text', () => echo(c, 'grüße 😀', false));
  await attempt('binary', () => echo(c, Buffer.from([0, 255, 254]), true));
  await attempt('empty', () => echo(c, '', false));
  await attempt('largest', () => echo(c, Buffer.alloc(most, 1), true));
  await attempt('fragments', async () => {
    c.send('a', { fin: false });
    c.ping();
    c.send('b', { fin: false });
    c.send('', { fin: true });
    same((await next(c))[0].toString(), 'ab');
  });
  await attempt('ping of the caller', async () => { c.ping('hello'); same((await next(c, 'pong'))[0].toString(), 'hello'); });
  await attempt('ping of the upstream', async () => { c.send('ping'); same((await next(c))[0].toString(), 'pong'); });
  await attempt('no compression', async () => same(c.extensions, ''));
  for (const [what, text, code] of [['code of the upstream', 'close 4005', 4005], ['upstream that vanishes', 'vanish', 1013]]) {
    await attempt(what, async () => { const d = await open(); d.send(text); same((await next(d, 'close'))[0], code); });
  }
  await attempt('too large', async () => { const d = await open(); d.on('error', () => {}); d.send(Buffer.alloc(most + 1)); same((await next(d, 'close'))[0], 1009); });
  await attempt('no UTF-8', async () => { const d = await open(); d.send(Buffer.from([0x61, 0xff]), { binary: false }); same((await next(d, 'close'))[0], 1007); });
  await attempt('subprotocol', async () => same((await open('', ['secret.k3y-of-mine', 'chat.v2'])).protocol, 'chat.v2'));
  await attempt('refusal', () => new Promise((resolve, reject) => {
    const d = new WebSocket(url + '/no');
    d.on('error', () => {});
    d.on('open', () => reject(new Error('it is open')));
    d.on('unexpected-response', (_, resp) => {
      let body = '';
      resp.on('data', (b) => { body += b; }).on('end', () => {
        if (resp.statusCode !== 403 || resp.headers['x-why'] !== 'closed' || body !== 'we are closed') reject(new Error(`${resp.statusCode} ${body}`));
        resolve();
      });
    });
  }));
  await attempt('limit', async () => {
    for (let i = 0; i < 3; i++) {
      c.send('{"action":"few"}');
      const back = JSON.parse((await next(c))[0].toString());
      if (i < 2) same(back.action, 'few');
      else same(`${back.error.code} ${typeof back.connectionId} ${typeof back.requestId}`, 'RATE_LIMIT_EXCEEDED string string');
    }
    await echo(c, 'still here', false);
  });
  await attempt('close', async () => { c.close(1000, 'bye'); const [code, why] = await next(c, 'close'); same(`${code} ${why}`, '1000 bye'); });
  process.exit(failed);
}

const [mode, ...args] = process.argv.slice(2);
if (mode === 'serve') serve();
else call(args[0], Number(args[1])).catch((e) => { console.log(e); process.exit(1); });
