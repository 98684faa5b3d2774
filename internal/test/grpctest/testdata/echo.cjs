// gRPC for JavaScript on either side of weir: "serve" is the service of these tests, "call ADDRESS" calls it.
'use strict'
const grpc = require('@grpc/grpc-js')

const plain = { requestSerialize: b => b, requestDeserialize: b => b, responseSerialize: b => b, responseDeserialize: b => b }
const method = (name, up, down) => ({ path: '/weir.test.Echo/' + name, requestStream: up, responseStream: down, ...plain })
const service = {
  Unary: method('Unary', false, false), Safe: method('Safe', false, false),
  Down: method('Down', false, true), Up: method('Up', true, false), Both: method('Both', true, true),
}
// message is a google.protobuf.BytesValue of less than 128 bytes, and said what is in one.
const message = s => Buffer.concat([Buffer.from([0x0a, Buffer.byteLength(s)]), Buffer.from(s)])
const said = b => b.subarray(2).toString()

// failed is FAILED_PRECONDITION with RetryInfo of a second, as google.rpc.Status.
function failed (text) {
  const field = (n, b) => Buffer.concat([Buffer.from([n << 3 | 2, b.length]), b])
  const any = Buffer.concat([field(1, Buffer.from('type.googleapis.com/google.rpc.RetryInfo')), field(2, field(1, Buffer.from([0x08, 1])))])
  return Buffer.concat([Buffer.from([0x08, 9]), field(2, Buffer.from(text)), field(3, any)])
}

function does (call) {
  const first = call.metadata.get('grpc-previous-rpc-attempts').length === 0
  return what => {
    const trailer = new grpc.Metadata()
    switch (what.split(' ')[0]) {
      case 'status':
        trailer.set('grpc-status-details-bin', failed('50% – done'))
        return { code: 9, details: '50% – done', metadata: trailer }
      case 'throttle':
        return first && { code: 8, details: 'slow down', metadata: trailer }
      case 'flaky':
        return first && { code: 14, details: 'not now', metadata: trailer }
      case 'never':
        trailer.set('grpc-retry-pushback-ms', '-1')
        return { code: 14, details: 'never', metadata: trailer }
      case 'slow':
        return 'never'
    }
  }
}

function serve () {
  const one = (call, answer) => {
    const end = does(call)(said(call.request))
    if (end === 'never') return
    end ? answer(end) : answer(null, call.request)
  }
  const server = new grpc.Server()
  server.addService(service, {
    Unary: one,
    Safe: one,
    Up (call, answer) {
      let n = 0
      call.on('data', () => n++).on('end', () => answer(null, message(String(n))))
    },
    Down (call) {
      for (let i = 0; i < 3; i++) call.write(call.request)
      const end = does(call)(said(call.request))
      if (end === 'never') return
      end ? call.emit('error', end) : call.end()
    },
    Both (call) {
      call.on('data', b => call.write(b)).on('end', () => call.end())
    },
  })
  server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (err, port) => {
    if (err) throw err
    console.log('serving 127.0.0.1:' + port)
  })
  process.stdin.on('end', () => server.forceShutdown()).resume()
}

const Client = grpc.makeGenericClientConstructor(service, 'Echo')

async function call (address, burst) {
  const client = new Client(address, grpc.credentials.createInsecure(), { 'grpc.enable_retries': 0 })
  const soon = ms => ({ deadline: Date.now() + ms })
  const unary = (name, what, options = soon(30000)) => new Promise(resolve =>
    client[name](message(what), new grpc.Metadata(), options, (err, got) => resolve(err ? { code: err.code, err } : { code: 0, got: said(got) })))
  const stream = (s, messages) => new Promise(resolve => {
    const got = []
    s.on('data', b => got.push(said(b))).on('error', () => {}).on('status', end => resolve({ code: end.code, end, got }))
    for (const m of messages) s.write(message(m))
    if (messages.length) s.end()
  })
  const good = (name, ok, what) => console.log(name + (ok ? ': good' : ': ' + JSON.stringify(what)))

  let r = await unary('Unary', 'ok 1')
  good('unary', r.got === 'ok 1', r)
  r = await unary('Unary', 'status 2')
  good('a status with details', r.code === 9 && r.err.details === '50% – done' && r.err.metadata.get('grpc-status-details-bin').length === 1, r)
  r = await unary('Unary', 'throttle 3')
  good('throttled and repeated', r.got === 'throttle 3', r)
  r = await unary('Safe', 'flaky 4')
  good('failed and repeated', r.got === 'flaky 4', r)
  r = await unary('Unary', 'flaky 5')
  good('failed and not repeated', r.code === 14, r)
  r = await unary('Unary', 'slow 6', soon(200))
  good('a deadline', r.code === 4, r)
  r = await stream(client.Both(new grpc.Metadata(), soon(30000)), ['a', 'b', 'c'])
  good('a stream both ways', r.code === 0 && r.got.join() === 'a,b,c', r)
  r = await stream(client.Down(message('status 7'), new grpc.Metadata(), soon(30000)), [])
  good('a stream down that ends in a status', r.code === 9 && r.got.length === 3, r)
  r = await new Promise(resolve => {
    const up = client.Up(new grpc.Metadata(), soon(30000), (err, got) => resolve(err ? { code: err.code } : { got: said(got) }))
    for (let i = 0; i < 5; i++) up.write(message('x'))
    up.end()
  })
  good('a stream up', r.got === '5', r)
  const many = await Promise.all(Array.from({ length: 300 }, (_, i) => unary('Unary', (i % 3 ? 'status ' : 'never ') + i)))
  good('many answers of trailers alone', many.every((m, i) => m.code === (i % 3 ? 9 : 14)), many.map(m => m.code))

  // What weir refuses itself: the limit lets burst more calls go.
  const rest = await Promise.all(Array.from({ length: burst + 20 }, (_, i) => unary('Unary', 'ok ' + i)))
  const no = rest.filter(m => m.code !== 0)
  good('refusals', no.length > 0 && no.every(m => m.code === 8 && m.err.metadata.get('grpc-status-details-bin').length === 1 &&
    m.err.metadata.get('grpc-retry-pushback-ms').length === 1), no.map(m => [m.code, m.err.details]))
  client.close()
}

if (process.argv[2] === 'serve') serve()
else call(process.argv[3], Number(process.argv[4]))
