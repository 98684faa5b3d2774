package config

import (
	"strings"
	"testing"
)

// Each file is followed by its complete error text.
var bad = []struct{ name, file, want string }{
	{"nothing at all", ``, `
weir.yaml:1:1: has no upstreams; write upstreams: {NAME: {url: https://...}}
`},
	{"only a comment", `# soon`, `
weir.yaml:1:1: has no upstreams; write upstreams: {NAME: {url: https://...}}
`},
	{"a list", `- a`, `
weir.yaml:1:1: a list: want fields, indented below it
`},
	{"a word", `upstreams`, `
weir.yaml:1:1: "upstreams": want fields, indented below it
`},
	{"no upstreams", `listen: :8080`, `
weir.yaml:1:1: has no upstreams; write upstreams: {NAME: {url: https://...}}
`},
	{"empty upstreams", `upstreams:`, `
weir.yaml:1:11: upstreams: has no upstreams; write upstreams: {NAME: {url: https://...}}
`},
	{"broken YAML", "upstreams:\n  s3: {url: https://h\n  other: 1\n", `
weir.yaml:2:1: broken YAML: did not find expected ',' or '}'
`},
	{"tabs", "upstreams:\n\ts3:\n\t\turl: https://h\n", `
weir.yaml:2:1: broken YAML: found character that cannot start any token; indent YAML with spaces, not tabs
`},
	{"two documents", "upstreams: {a: {url: https://h}}\n---\nlisten: :80\n", `
weir.yaml:2:1: a second document begins; a configuration must be one document, without ---
`},
	{"stale answers of APIs that have none", `
upstreams:
  a: {url: https://h, stale_if_error: 1m, aws: {service: s3, region: eu-west-1}}
  b: {url: https://h, stale_if_error: 1m, llm: {family: openai}}
  c: {url: https://h, stale_if_error: 1m, grpc: true}
`, `
weir.yaml:3:39: upstreams.a.stale_if_error: answers are not kept for upstreams with aws, llm or grpc; language models have llm.cache; remove it
weir.yaml:4:39: upstreams.b.stale_if_error: answers are not kept for upstreams with aws, llm or grpc; language models have llm.cache; remove it
weir.yaml:5:39: upstreams.c.stale_if_error: answers are not kept for upstreams with aws, llm or grpc; language models have llm.cache; remove it
`},
	{"bounds of what is in flight", `
upstreams:
  a: {url: https://h, concurrency: many}
  b: {url: https://h, concurrency: 0}
  c: {url: https://h, concurrency: {limit: 5, min: 2}}
  d: {url: https://h, concurrency: {min: 5, max: 2, most: 1}}
  e: {url: https://h, concurrency: {min: 5, max: 2}}
  f: {url: https://h, concurrency: [1]}
`, `
weir.yaml:3:36: upstreams.a.concurrency: "many": want auto, off or a number
weir.yaml:4:36: upstreams.b.concurrency: "0": must be at least 1; write off for no bound
weir.yaml:5:52: upstreams.c.concurrency.min: min applies only to a learned bound, but limit is a number; leave it out, or write limit: auto
weir.yaml:6:42: upstreams.d.concurrency.min: 5: must not be above max 2
weir.yaml:6:53: upstreams.d.concurrency.most: unknown field "most"
weir.yaml:7:42: upstreams.e.concurrency.min: 5: must not be above max 2
weir.yaml:8:36: upstreams.f.concurrency: a list: want fields, indented below it
`},
	{"combinations of scopes", `
callers:
  keys: {run: "header:X-Agent-Run"}
  limits:
    b: {rate: 1/s, scope: [run, user, run]}
    c: {rate: 1/s, scope: []}
    d: {rate: 1/s, scope: [run]}
    e: {rate: 1/s, scope: "run, user"}
    f: {rate: 1/s, scope: [run, user], labels: true}
    g: {rate: 1/s, scope: [run, [user]]}
upstreams: {a: {url: https://h, keys: {x: "header:X"}, limits: {m: {rate: 1/s, scope: [x, run]}}, fair: {by: "x, x"}}}
`, `
weir.yaml:5:39: callers.limits.b.scope[2]: "run" is already in the list; leave it out
weir.yaml:6:27: callers.limits.c.scope: a list of scopes has at least two; leave scope out, or name a scope
weir.yaml:7:27: callers.limits.d.scope: a list of scopes has at least two; write scope: run
weir.yaml:8:27: callers.limits.e.scope: "run, user" is not one scope; write scope: [run, user]
weir.yaml:9:48: callers.limits.f.labels: metrics would show the values of "run"; set hash_env
weir.yaml:9:48: callers.limits.f.labels: metrics would show the values of "user"; set hash_env
weir.yaml:10:33: callers.limits.g.scope[1]: a list: want a text
weir.yaml:11:87: upstreams.a.limits.m.scope: "run": unknown scope; add keys: {run: "header:X-Name"}
weir.yaml:11:110: upstreams.a.fair.by: "x, x": unknown scope; add keys: {x, x: "header:X-Name"}
`},
	{"calls without a key", `
callers: {keys: {run: "header:X-Agent-Run"}, missing: {run: refuse, tool: refuse, user: share, model: share}}
upstreams: {a: {url: https://h, callers: true}}
`, `
weir.yaml:2:75: callers.missing.tool: "tool": unknown scope; name a scope of keys: plan, run, tenant, user
weir.yaml:2:103: callers.missing.model: "model": unknown scope; name a scope of keys: plan, run, tenant, user
`},
	{"what to do without a key", `
callers: {keys: {run: "header:X-Agent-Run"}, missing: {run: ignore}}
upstreams: {a: {url: https://h, callers: true}}
`, `
weir.yaml:2:61: callers.missing.run: "ignore": want share or refuse
weir.yaml:3:42: upstreams.a.callers: the file has no limits for callers; add callers: true beside upstreams
`},
	{"an unknown scope in a combination", `
callers: {keys: {run: "header:X-Agent-Run"}, limits: {a: {rate: 1/s, scope: [run, tol]}}}
upstreams: {a: {url: https://h, callers: true}}
`, `
weir.yaml:2:77: callers.limits.a.scope: "tol": unknown scope; add keys: {tol: "header:X-Name"}
`},
	{"stores", `
store: {redis: "redis://:hunter2@h:6379", memory: true, dynamodb: {endpoint: nowhere}, password_env: X}
decide: {grpc: 127.0.0.1:1, client_ca: ca.pem, tokens: {a: {upstreams: [s3]}}}
upstreams: {a: {url: https://h}}
`, `
weir.yaml:2:8: store: needs one of redis, dynamodb, file and memory; write store: {redis: redis://localhost:6379}
weir.yaml:2:16: store.redis: must not contain a password; name the environment variable that holds it in password_env
weir.yaml:2:67: store.dynamodb: has no table
weir.yaml:2:78: store.dynamodb.endpoint: is not the URL of a server; write it as http://localhost:8000
weir.yaml:3:9: decide: set both grpc and rules: the address for Envoy, and the rules
weir.yaml:3:40: decide.client_ca: client certificates need tls; add tls: {cert: ..., key: ...}
weir.yaml:3:60: decide.tokens.a: has no env
weir.yaml:3:73: decide.tokens.a.upstreams[0]: unknown upstream "s3"; want one of a
`},
	{"tokens for what is not there", `
tokens: {app: {env: APP, upstreams: [gppt, s3]}}
decide: {listen: 127.0.0.1:0, tokens: {job: {env: JOB, upstreams: [s4]}}}
upstreams: {gpt: {url: https://h}, s3: {url: https://i}}
`, `
weir.yaml:2:38: tokens.app.upstreams[0]: unknown upstream "gppt"; did you mean gpt?
weir.yaml:3:68: decide.tokens.job.upstreams[0]: unknown upstream "s4"; want one of gpt, s3
`},
	{"the store is away", `
store: {memory: true, outage: 1s, without: share}
upstreams: {a: {url: https://h}}
`, `
weir.yaml:2:31: store.outage: must be at least 5s: a process detects an outage of the store after a second
weir.yaml:2:44: store.without: "share": want part, refuse, or a share such as 10%
`},
	{"a store that is a word, decisions for all", `
store: redis
decide: {listen: ":8082"}
upstreams: {a: {url: https://h}}
`, `
weir.yaml:2:8: store: "redis": want fields, indented below it
weir.yaml:3:9: decide: listen ":8082": would let anyone who reaches it use up the limits; configure tokens with reports, or use 127.0.0.1
`},
	{"credentials for whoever comes", `
listen: :8080
upstreams:
  s3: {url: "https://h", aws: {service: s3, region: eu-west-1}}
  gpt: {url: "https://g", llm: {key_env: KEY}}
  mine: {url: "https://m", llm: {}}
  second: {url: "https://n", llm: {cascade: {tiers: [{upstream: gpt}]}}}
`, `
weir.yaml:2:9: listen: ":8080": anyone who reaches it could call gpt, s3, second with weir's credentials; add tokens, jwt, client_ca with tls, or jwt with secret_env and callers; or listen on 127.0.0.1; or set open: true
`},
	{"claims that may be left out", `
listen: 10.0.0.7:8080
callers: {keys: {user: "claim:sub"}, claims: {secret_env: SECRET, optional: true}}
upstreams: {gpt: {url: "https://g", llm: {key_env: KEY}}}
`, `
weir.yaml:2:9: listen: "10.0.0.7:8080": anyone who reaches it could call gpt with weir's credentials; add tokens, jwt, client_ca with tls, or jwt with secret_env and callers; or listen on 127.0.0.1; or set open: true
`},
	{"claims that do not count there, and that nobody looks at", `
listen: 10.0.0.7:8080
callers: {claims: {secret_env: SECRET}}
upstreams: {gpt: {url: "https://g", llm: {key_env: KEY, callers: false}}}
`, `
weir.yaml:2:9: listen: "10.0.0.7:8080": anyone who reaches it could call gpt with weir's credentials; add tokens, jwt, client_ca with tls, or jwt with secret_env and callers; or listen on 127.0.0.1; or set open: true
weir.yaml:3:19: callers.claims: jwt has no effect, because no key reads a claim; add keys: {user: "claim:sub"}
`},
	{"access", `
tokens: {a: {}, b: {env: A-B}}
admin_tokens: {c: {env: X, upstreams: [a]}}
client_ca: ca.pem
admin_client_ca: ca.pem
admin_tls: true
admin_auth: some
origins: ["*", "https://app.example/", app.example, "https://app.example"]
hosts: ["*.example"]
upstreams: {a: {url: https://h}}
`, `
weir.yaml:2:13: tokens.a: has no env
weir.yaml:2:26: tokens.b.env: env: is not the name of an environment variable; want the name of the variable that contains the secret
weir.yaml:3:28: admin_tokens.c.upstreams: unknown field "upstreams"
weir.yaml:4:12: client_ca: client certificates need tls; add tls: {cert: ..., key: ...}
weir.yaml:5:18: admin_client_ca: client certificates need tls; add tls: {cert: ..., key: ...}
weir.yaml:6:12: admin_tls: no server certificate is configured; add tls: {cert: ..., key: ...}
weir.yaml:7:13: admin_auth: "some": want all or most
weir.yaml:8:11: origins[0]: "*": would let every page use weir's credentials; name the origins of your pages
weir.yaml:8:16: origins[1]: "https://app.example/": must be a scheme and a host, and nothing else; write https://app.example
weir.yaml:8:40: origins[2]: "app.example": is not an origin; write it as https://app.example
weir.yaml:9:9: hosts[0]: "*.example": is not a host: wildcards are not supported; name each host; a route without one takes every host
`},
	{"where weir itself is", `
listen: 127.0.0.1:8080
admin: 127.0.0.1:8081
decide: {listen: "localhost:8082"}
upstreams:
  a: {url: "http://localhost:8080/x"}
  b: {url: "http://127.0.0.1:8081"}
  c: {url: "http://[::1]:8082"}
  d: {url: "http://127.0.0.1:8083", pass_headers: ["a b", X-Real-IP]}
`, `
weir.yaml:6:12: upstreams.a.url: "http://localhost:8080/x": weir itself listens on this address
weir.yaml:7:12: upstreams.b.url: "http://127.0.0.1:8081": weir itself listens on this address
weir.yaml:8:12: upstreams.c.url: "http://[::1]:8082": weir itself listens on this address
weir.yaml:9:52: upstreams.d.pass_headers[0]: "a b": is not the name of a header
`},
	{"unknown fields", `
lisen: :8080
upstreams:
  s3:
    url: https://h
    limts: {}
    colour: blue
    limits: {put: {rat: 1/s}}
`, `
weir.yaml:2:1: lisen: unknown field "lisen"; did you mean listen?
weir.yaml:6:5: upstreams.s3.limts: unknown field "limts"; did you mean limits?
weir.yaml:7:5: upstreams.s3.colour: unknown field "colour"
weir.yaml:8:20: upstreams.s3.limits.put.rat: unknown field "rat"; did you mean rate?
`},
	{"twice", `
listen: :8080
listen: :8081
upstreams:
  a: {url: https://h}
  a: {url: https://i}
`, `
weir.yaml:3:1: listen: is given twice, first in line 2
weir.yaml:6:3: upstreams.a: is given twice, first in line 5
`},
	{"wrong types", `
listen: [a]
tls: yes
drain: {}
upstreams:
  a: https://h
  b:
    url: {host: h}
    limits: 5
    operations: [put]
    retry: [aws]
    routes: /x
    keys: header
    classify: {throttled: {a: b}}
`, `
weir.yaml:2:9: listen: a list: want host:port
weir.yaml:3:6: tls: "yes": want fields, indented below it
weir.yaml:4:8: drain: fields: want a duration (250ms, 30s, 5m, 1h)
weir.yaml:6:6: upstreams.a: "https://h": want fields, indented below it
weir.yaml:8:10: upstreams.b.url: fields: want a URL
weir.yaml:9:13: upstreams.b.limits: "5": want fields, indented below it
weir.yaml:10:17: upstreams.b.operations: a list: want fields, indented below it
weir.yaml:11:12: upstreams.b.retry: a list: want fields, indented below it
weir.yaml:12:13: upstreams.b.routes: "/x": want a list of routes; write routes: [{path: /s3/}]
weir.yaml:13:11: upstreams.b.keys: "header": want fields, indented below it
weir.yaml:14:27: upstreams.b.classify.throttled: fields: want a list, such as [a, b]
`},
	{"values", `
listen: 8080
admin: 127.0.0.1:99999
drain: 30
max_header: 64 apples
log: loud
upstreams:
  a:
    url: https://h
    replay: -1
    max_wait: soon
    max_pause: -5m
    timeouts: {call: 10, attempt: 9999999h}
    limits:
      l: {rate: -3/s}
      m: {rate: 0/s, burst: -1, shape: round, max_keys: many}
      n: 100
      o: {rate: 5/fortnight, burst: 1.5}
      p: {burst: 5}
      q: {rate: 10/s burst 5, burst: 6}
    budget: {share: 10, floor: -1}
    breaker: {share: 150%, failures: -1, count_throttled: perhaps}
    retry: {attempts: 0, jitter: wild, retry_on: [ok, late]}
log_each_second: 0
`, `
weir.yaml:2:9: listen: "8080": want host:port; write 127.0.0.1:8080, or :8080 for every address
weir.yaml:3:8: admin: "127.0.0.1:99999": want a port from 0 to 65535 after the colon
weir.yaml:4:8: drain: "30": has no unit; write 30s for seconds, or use ms, m, h
weir.yaml:5:13: max_header: "64 apples": is not a size; write it as 64KiB, 1MiB or a number of bytes
weir.yaml:6:6: log: "loud": want debug, info, warn or error
weir.yaml:10:13: upstreams.a.replay: "-1": is not a size; write it as 64KiB, 1MiB or a number of bytes
weir.yaml:11:15: upstreams.a.max_wait: "soon": is not a duration; write it as 250ms, 30s, 5m or 1h30m
weir.yaml:12:16: upstreams.a.max_pause: "-5m": must be longer than 0
weir.yaml:13:22: upstreams.a.timeouts.call: "10": has no unit; write 10s for seconds, or use ms, m, h
weir.yaml:13:35: upstreams.a.timeouts.attempt: "9999999h": is not a duration; write it as 250ms, 30s, 5m or 1h30m
weir.yaml:15:17: upstreams.a.limits.l.rate: "-3/s": must be at least 1; to stop all calls, open the breaker or remove the upstream
weir.yaml:16:17: upstreams.a.limits.m.rate: "0/s": must be at least 1; to stop all calls, open the breaker or remove the upstream
weir.yaml:16:29: upstreams.a.limits.m.burst: "-1": must be at least 1
weir.yaml:16:40: upstreams.a.limits.m.shape: "round": want bucket, rolling or fixed
weir.yaml:16:57: upstreams.a.limits.m.max_keys: "many": want a whole number
weir.yaml:17:10: upstreams.a.limits.n: "100": has no period; write 100/s for per second, or use min, h, day
weir.yaml:18:17: upstreams.a.limits.o.rate: "5/fortnight": period "fortnight": want s, min, h, day or a positive duration such as 250ms
weir.yaml:18:37: upstreams.a.limits.o.burst: "1.5": want a whole number
weir.yaml:19:10: upstreams.a.limits.p: has no rate; write rate: 100/s
weir.yaml:20:38: upstreams.a.limits.q.burst: rate also contains a burst; leave one of them out
weir.yaml:21:21: upstreams.a.budget.share: "10": is more than 100%; write 10% if that is meant
weir.yaml:21:32: upstreams.a.budget.floor: "-1": must be above 0
weir.yaml:22:22: upstreams.a.breaker.share: "150%": must be above 0%, at most 100%
weir.yaml:22:38: upstreams.a.breaker.failures: "-1": must be at least 0
weir.yaml:22:59: upstreams.a.breaker.count_throttled: "perhaps": want true or false
weir.yaml:23:23: upstreams.a.retry.attempts: "0": must be at least 1
weir.yaml:23:34: upstreams.a.retry.jitter: "wild": want full, none, equal, decorrelated, range or added
weir.yaml:23:50: upstreams.a.retry.retry_on: ok: must be throttled, failed, unknown or rejected
weir.yaml:23:55: upstreams.a.retry.retry_on[1]: "late": want throttled, failed, unknown or rejected
weir.yaml:24:18: log_each_second: "0": must be at least 1
`},
	{"names", `
upstreams:
  "a/b": {url: https://h}
  s3:
    url: https://h
    limits: {"per tenant": 1/s}
    operations: {"": {}}
`, `
weir.yaml:3:3: upstreams."a/b": "a/b" cannot be a name: want letters, digits, -, _ and ., at most 63
weir.yaml:6:14: upstreams.s3.limits."per tenant": "per tenant" cannot be a name: want letters, digits, -, _ and ., at most 63
weir.yaml:7:18: upstreams.s3.operations."": "" cannot be a name: want letters, digits, -, _ and ., at most 63
`},
	{"gRPC", `
upstreams:
  a: {url: "http://h:50051", grpc: true}
  b: {url: "h2c://h", grpc: true, aws: {}, routes: [{path: /b.B/}]}
  c: {url: "h2c://h", grpc: true, routes: [{path: /c.C/, idempotency: keep}]}
  d: {url: "h2c://h", grpc: true}
`, `
weir.yaml:3:12: upstreams.a.url: gRPC needs HTTP/2, and http:// is HTTP/1.1; write it as h2c://h:50051
weir.yaml:4:29: upstreams.b.grpc: grpc cannot be combined with aws or llm; remove one of them
weir.yaml:5:44: upstreams.c.routes[0]: gRPC calls cannot be delivered later, and their responses cannot be stored; remove deliver and idempotency
weir.yaml:5:71: upstreams.c.routes[0].idempotency: deliveries, which store responses, are not configured; write deliveries: {file: deliveries.db}
weir.yaml:6:3: upstreams.d: has no routes: the default route would be */, which upstream a already has in line 3; change the host or path of one of them
`},
	{"urls", `
upstreams:
  a: {}
  b: {url: ftp://h}
  c: {url: "http://"}
  d: {url: "https://user:secret@h"}
  e: {url: "https://h?x=1"}
  f: {url: "https://h#x"}
  g: {url: "h:8080"}
  h: {url: "https://h:port"}
  i: {url: "https://h/a/../b"}
  j: {url: "http://localhost:8080"}
  k: {url: "https://h:"}
`, `
weir.yaml:3:6: upstreams.a: has no url
weir.yaml:4:12: upstreams.b.url: "ftp://h": must begin with http://, https:// or h2c://; write it as https://host/path
weir.yaml:5:12: upstreams.c.url: "http://": has no host; write it as https://host/path
weir.yaml:6:12: upstreams.d.url: must not contain a user name or password; have the caller send the credentials
weir.yaml:7:12: upstreams.e.url: "https://h?x=1": must have no query and no fragment
weir.yaml:8:12: upstreams.f.url: "https://h#x": must have no query and no fragment
weir.yaml:9:12: upstreams.g.url: "h:8080": must begin with http://, https:// or h2c://; write it as https://host/path
weir.yaml:10:12: upstreams.h.url: "https://h:port": is not a URL; write it as https://host/path
weir.yaml:11:12: upstreams.i.url: "https://h/a/../b": must have no . or .. in its path
weir.yaml:12:12: upstreams.j.url: "http://localhost:8080": weir itself listens on this address
weir.yaml:13:12: upstreams.k.url: "https://h:": has no host; write it as https://host/path
`},
	{"paths of operations", `
upstreams:
  a: {url: https://h, operations: {b: {path: /orders/*}, c: {path: "/**"}, d: {path: "/a?b"}, e: {path: "/a b"}, f: {path: /ok}}}
`, `
weir.yaml:3:46: upstreams.a.operations.b.path: "/orders/*": is not a path prefix: wildcards are not supported; write /orders/ for all paths with this prefix
weir.yaml:3:68: upstreams.a.operations.c.path: "/**": is not a path prefix: wildcards are not supported; write / for all paths with this prefix
weir.yaml:3:86: upstreams.a.operations.d.path: "/a?b": must be a plain prefix, without query, fragment or space
weir.yaml:3:105: upstreams.a.operations.e.path: "/a b": must be a plain prefix, without query, fragment or space
`},
	{"routes", `
upstreams:
  a: {url: https://h}
  b: {url: https://h, routes: [{path: /a}]}
  c: {url: https://h, routes: [{host: H.example:80}, {host: X.local, path: /p}, {host: x.LOCAL, path: /p/}]}
  d: {url: https://h, routes: [{}, {strip: true}, {host: h, strip: true}, {path: p}, {path: "/p?q"}, {path: //p}, {host: "*.h"}, {port: 1}]}
  e: {url: https://h, routes: []}
  f: {url: https://h, routes: [{path: /g/}]}
  g: {url: https://h}
`, `
weir.yaml:4:32: upstreams.b.routes[0]: upstream a already has the route */a/ in line 3; change the host or path of one of them
weir.yaml:5:39: upstreams.c.routes[0].host: "H.example:80": is not a host; write it without scheme and port
weir.yaml:5:81: upstreams.c.routes[2]: upstream c already has the route x.local/p/ in line 5; change the host or path of one of them
weir.yaml:6:32: upstreams.d.routes[0]: has neither host nor path; write path: / for every request
weir.yaml:6:36: upstreams.d.routes[1]: has neither host nor path; write path: / for every request
weir.yaml:6:68: upstreams.d.routes[2].strip: strip needs path
weir.yaml:6:82: upstreams.d.routes[3].path: "p": must begin with a slash; write /p
weir.yaml:6:93: upstreams.d.routes[4].path: "/p?q": must be a plain prefix, without query, fragment, space or wildcard
weir.yaml:6:109: upstreams.d.routes[5].path: "//p": must have no empty segment and no . or ..
weir.yaml:6:122: upstreams.d.routes[6].host: "*.h": is not a host: wildcards are not supported; name each host; a route without one takes every host
weir.yaml:6:131: upstreams.d.routes[7].port: unknown field "port"; want one of host, path, strip, stream, websocket, deliver, idempotency
weir.yaml:7:31: upstreams.e.routes: no request would reach the upstream; leave routes out for the default
weir.yaml:9:3: upstreams.g: has no routes: the default route would be */g/, which upstream f already has in line 8; change the host or path of one of them
`},
	{"what belongs together", `
listen: 127.0.0.1:9000
admin: 0.0.0.0:9000
tls: {cert: c.pem}
upstreams:
  a:
    url: https://h
    preset: s4
    operations:
      put: {methods: [put], path: x, safe: maybe}
      get: {methods: GET, retry: {attempts: 2, cap: 1ms}}
    limits:
      l: {rate: 1/s, operations: [put, copy], scope: tenant}
      m: {rate: 5/s, adaptive: {start: 9/s, max: 7/s}}
      n: {rate: 5/s, shape: rolling, burst: 2, adaptive: true}
    breaker: {scope: team, open: 5m, max_open: 1m, failures: 0}
    budget: {window: 1ms}
    quota: aws-2027
    classify: {throttled: ["429", "999"], failed: ["429"]}
    keys: {user: "cookie:x", key: "headers:x", who: "header:a b", q: "query:"}
  b:
    url: https://h
    limits: {l: {rate: 1/s, operations: put}}
    retry: {schedule: aws-2026, cap: 10ms}
    breaker: {failures: off}
    quota: {capacity: 3}
`, `
weir.yaml:3:8: admin: "0.0.0.0:9000": would show upstreams, limits and keys to anyone who reaches it; use 127.0.0.1, or set admin_open: true
weir.yaml:3:8: admin: admin 0.0.0.0:9000 and listen 127.0.0.1:9000 are the same; give admin and listen different ports
weir.yaml:4:6: tls: has no key
weir.yaml:8:13: upstreams.a.preset: unknown preset "s4"; "weir presets" lists weir's
weir.yaml:10:23: upstreams.a.operations.put.methods[0]: "put": want an HTTP method in capitals
weir.yaml:10:35: upstreams.a.operations.put.path: "x": must begin with a slash
weir.yaml:10:44: upstreams.a.operations.put.safe: "maybe": want yes, no or by-method
weir.yaml:11:53: upstreams.a.operations.get.retry.cap: 1ms: must not be below base 100ms
weir.yaml:13:40: upstreams.a.limits.l.operations[1]: "copy": unknown operation
weir.yaml:13:54: upstreams.a.limits.l.scope: "tenant": unknown scope; add keys: {tenant: "header:X-Name"}
weir.yaml:14:40: upstreams.a.limits.m.adaptive.start: 9: must not be above max 7
weir.yaml:15:45: upstreams.a.limits.n.burst: 2: a rolling limit has none; its amount may be used all at one time
weir.yaml:15:58: upstreams.a.limits.n.adaptive: a rolling limit has no rate to learn; use shape bucket
weir.yaml:16:22: upstreams.a.breaker.scope: "team": unknown scope; add keys: {team: "header:X-Name"}
weir.yaml:16:48: upstreams.a.breaker.max_open: 1m0s: must not be below open 5m0s
weir.yaml:16:62: upstreams.a.breaker.failures: no rule opens the breaker; set share, consecutive or failures, or write breaker: off
weir.yaml:17:13: upstreams.a.budget: quota cannot be combined with budget, except budget.all; remove one of them
weir.yaml:17:22: upstreams.a.budget.window: 1ms: must be from 100ms to 24h
weir.yaml:18:12: upstreams.a.quota: unknown schedule "aws-2027"; did you mean aws-2026?
weir.yaml:19:35: upstreams.a.classify.throttled[1]: "999": a status must be from 200 to 599
weir.yaml:19:52: upstreams.a.classify.failed[0]: "429": is in throttled already
weir.yaml:20:18: upstreams.a.keys.user: "cookie:x": want header:NAME, query:NAME, caller or remote
weir.yaml:20:35: upstreams.a.keys.key: "headers:x": want header:NAME, query:NAME, caller or remote
weir.yaml:20:53: upstreams.a.keys.who: "header:a b": is not the name of a header or parameter
weir.yaml:20:70: upstreams.a.keys.q: "query:": is not the name of a header or parameter
weir.yaml:23:41: upstreams.b.limits.l.operations: the upstream has no operations; declare it under operations
weir.yaml:24:38: upstreams.b.retry.cap: 10ms: must not be below base 50ms
weir.yaml:24:38: upstreams.b.retry.cap: 10ms: must not be below throttle_base 1s
weir.yaml:25:25: upstreams.b.breaker.failures: no rule opens the breaker; set share, consecutive or failures, or write breaker: off
weir.yaml:26:23: upstreams.b.quota.capacity: 3: must not be below the price of one retry, 14
`},
	{"breakers", `
upstreams:
  a:
    url: https://h
    preset: http
    breaker: {share: off, consecutive: off}
  b:
    url: https://h
    breaker: {share: 40%, consecutive_for: 3s}
  c:
    url: https://h
    breaker: six-a-minute
  d:
    url: https://h
    breaker: {open: 1s, first_open: 2s}
  e:
    url: https://h
    breaker: {failures: 5, success_takes_one: true}
`, `
weir.yaml:6:22: upstreams.a.breaker.share: no rule opens the breaker; set share, consecutive or failures, or write breaker: off
weir.yaml:9:44: upstreams.b.breaker.consecutive_for: needs another rule; add consecutive
weir.yaml:12:14: upstreams.c.breaker: unknown schedule "six-a-minute"; did you mean five-a-minute?
weir.yaml:15:37: upstreams.d.breaker.first_open: 2s: must not be above open 1s
weir.yaml:18:47: upstreams.e.breaker.success_takes_one: needs another rule; add consecutive
`},
	{"limits by the calendar", `
upstreams:
  a:
    url: https://h
    limits:
      a: {amount: 25}
      b: {every: day}
      c: {shape: fixed}
      d: {shape: fixed, rate: 25/day}
      e: {rate: 25/day, every: day, zone: UTC}
      f: {rate: 25/day, zone: UTC}
      g: {amount: 25, every: day, shape: rolling}
      h: {amount: 25, every: day, burst: 5, adaptive: true}
      i: {amount: 0, every: daily}
      j: {amount: 2.5, every: fortnight}
      k: {amount: 25, every: day, zone: PST}
      l: {amount: 25, every: day, zone: America/Los_Angels}
      m: {amount: 25, every: day, zone: los angeles}
      n: {amount: 25, every: day, zone: Mars/Olympus}
      o: {amount: 25, every: day, zone: [UTC]}
      p: {amount: 25, every: day, zone: Local}
      q: {amount: 25, every: day, zone: europe/london}
`, `
weir.yaml:6:10: upstreams.a.limits.a: has an amount without a window; write every: day
weir.yaml:7:10: upstreams.a.limits.b: has no amount; write amount: 25
weir.yaml:8:10: upstreams.a.limits.c: has an amount without a window; write every: day
weir.yaml:9:31: upstreams.a.limits.d.rate: a calendar limit has no rate; write amount: 25 and every: day instead
weir.yaml:10:17: upstreams.a.limits.e.rate: a calendar limit has no rate; write amount: 25 and every: day instead
weir.yaml:11:31: upstreams.a.limits.f.zone: zone needs every; write amount: 25 and every: day instead of rate
weir.yaml:12:42: upstreams.a.limits.g.shape: calendar windows have the shape fixed; leave it out
weir.yaml:13:42: upstreams.a.limits.h.burst: 5: a fixed limit has none; its amount may be used all at one time
weir.yaml:13:55: upstreams.a.limits.h.adaptive: a fixed limit has no rate to learn; use shape bucket
weir.yaml:14:19: upstreams.a.limits.i.amount: "0": must be at least 1
weir.yaml:14:29: upstreams.a.limits.i.every: "daily": want second, minute, hour, day, week or month; write day
weir.yaml:15:19: upstreams.a.limits.j.amount: "2.5": want a whole number
weir.yaml:15:31: upstreams.a.limits.j.every: "fortnight": want second, minute, hour, day, week or month
weir.yaml:16:41: upstreams.a.limits.k.zone: "PST": is not a location, so its clock changes are unknown; write America/Los_Angeles if that is meant
weir.yaml:17:41: upstreams.a.limits.l.zone: "America/Los_Angels": is not a time zone; did you mean America/Los_Angeles?
weir.yaml:18:41: upstreams.a.limits.m.zone: "los angeles": is not a time zone; did you mean America/Los_Angeles?
weir.yaml:19:41: upstreams.a.limits.n.zone: "Mars/Olympus": is not a time zone; write it as Area/City, such as America/Los_Angeles, or UTC
weir.yaml:20:41: upstreams.a.limits.o.zone: a list: want the IANA name of a time zone (America/Los_Angeles, UTC)
weir.yaml:21:41: upstreams.a.limits.p.zone: "Local": is not a location, so its clock changes are unknown; write UTC if that is meant
weir.yaml:22:41: upstreams.a.limits.q.zone: "europe/london": is not a time zone; did you mean Europe/London?
`},
	{"a rate where the preset has a calendar", `
upstreams:
  a:
    preset: gemini-free
    limits: {rpd: 50/day}
  b:
    preset: gemini-free
    limits: {rpd: {shape: rolling}}
  c:
    preset: gemini-free
    limits: {rpm: {amount: 5}}
`, `
weir.yaml:5:19: upstreams.a.limits.rpd: the preset's limit is a calendar limit: it has an amount and no rate; write amount: 50, or also set shape: bucket
weir.yaml:8:27: upstreams.b.limits.rpd.shape: calendar windows have the shape fixed; leave it out
weir.yaml:11:28: upstreams.c.limits.rpm.amount: the preset has a rate; amount is for calendar limits; also write every: day
`},
	{"a preset that does not fit", `
upstreams:
  a:
    url: https://h
    preset: s3
    limits: {put: {shape: rolling}}
    operations: {get: off}
`, `
weir.yaml:5:13: upstreams.a.limits.put.burst: 300: a rolling limit has none; its amount may be used all at one time (from preset s3)
weir.yaml:5:13: upstreams.a.limits.put.adaptive: a rolling limit has no rate to learn; use shape bucket (from preset s3)
weir.yaml:5:13: upstreams.a.limits.get.operations[0]: "get": unknown operation (from preset s3)
`},
	{"aliases", `
x: &x {a: *x}
upstreams: &u
  a: {url: https://h, limits: *u}
`, `
weir.yaml:2:11: x.a.a: alias "*x" refers to what it is part of
weir.yaml:4:31: upstreams.a.limits.a.limits: alias "*u" refers to what it is part of
`},
	{"merge of what is no mapping", `
upstreams:
  a: {url: https://h, <<: 5}
`, `
weir.yaml:3:27: upstreams.a: << needs a mapping
`},
	{"keys that are no labels", `
harmless: [team]
callers: {limits: {user: {rate: 5/s, scope: user, labels: true}}}
upstreams:
  a:
    url: https://h
    keys: {tenant: "header:X-Tenant", team: "header:X-Team"}
    limits:
      all: {rate: 5/s, labels: true}
      tenant: {rate: 5/s, labels: true, scope: tenant, shape: rolling}
      team: {rate: 5/s, scope: team, labels: true}
      day: {amount: 5, every: day, scope: tenant, labels: maybe}
`, `
weir.yaml:3:59: callers.limits.user.labels: metrics would show the values of "user"; set hash_env
weir.yaml:9:32: upstreams.a.limits.all.labels: a limit without a scope has no keys; write scope: tenant
weir.yaml:10:35: upstreams.a.limits.tenant.labels: metrics would show the values of "tenant"; set hash_env
weir.yaml:12:59: upstreams.a.limits.day.labels: "maybe": want true or false
`},
	{"keys that are no words", `
upstreams:
  ? [a, b]
  : {url: https://h}
`, `
weir.yaml:3:5: upstreams: want a plain name before the colon
`},
}

func TestEveryMistakeIsFound(t *testing.T) {
	for _, test := range bad {
		t.Run(test.name, func(t *testing.T) {
			f, err := Parse("weir.yaml", []byte(test.file), nil)
			if f != nil || err == nil {
				t.Fatalf("got %+v, want complaints", f)
			}
			if got, want := err.Error(), strings.TrimSpace(test.want); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}
