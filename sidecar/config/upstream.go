package config

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/outcome/classify"
	"github.com/seed1158cd35/weir/sidecar/proxy"
)

const mostReplay = 1 << 30

// A site is an upstream while the file is read.
type site struct {
	Upstream
	off     bool              // its limits are turned off
	retries *node             // of the upstream; operations build on it
	routes  []*node           // positions of Routes; empty if the file has no routes
	owned   []owned           // operations with their own settings
	sends   map[string]string // headers that weir adds, and the variables with their values
	aws     *AWS              // nil unless it is an AWS service
	jobs    *Jobs             // nil unless it has a job limit
	llm     *LLM              // nil unless it is a language model
	mcp     bool              // it is an MCP server
	anyCase bool              // its paths are case-insensitive
	counts  bool              // its requests are charged to callers
	learns  bool              // the file does not mention concurrency, and it may be learned
	at      map[string]string // positions of its fields
}

// place returns the position of a route. key is the position of the upstream, for default routes.
func (u *site) place(i int, r proxy.Route, key *node) place {
	if i < len(u.routes) {
		return place{r, u.Name, u.routes[i], false}
	}
	return place{r, u.Name, key, true}
}

var upstreamFields = []field[site]{
	{"url", "a URL", "required", "`http`, `https` or `h2c` (HTTP/2 without encryption), a host, and an optional path, which is prepended to the request's path.", readURL},
	one("hosts", listOf(hostPattern), func(u *site) *[]string { return &u.Hosts }, "the host of `url`",
		"Hosts whose calls `weir run` sends through this upstream. `*` stands for any characters: `*.s3.amazonaws.com`."),
	{"preset", "the name of a preset", "none", "Defaults for this upstream; see [Presets](#presets).", nothing},
	{"routes", "a list of routes", "`{path: /NAME/, strip: true}`, with `grpc` `{path: /}`", "Requests for this upstream.", readRoutes},
	one("replay", orOff(replay, -1), func(u *site) *int64 { return &u.Replay }, "1MiB",
		""),
	one("max_body", orOff(size(1, 1<<50), 0), func(u *site) *int64 { return &u.MaxBody }, "any",
		"Largest request body."),
	one("stale_if_error", orOff(duration, 0), func(u *site) *time.Duration { return &u.StaleIfError }, "off",
		"While the upstream fails or weir refuses, GET and HEAD get the last good response for the same credential, up to this age; see docs/how-to/answer-while-an-upstream-fails.md."),
	one("full", choice("pass or refuse", map[string]proxy.Full{"pass": proxy.FullPass, "refuse": proxy.FullRefuse}), func(u *site) *proxy.Full { return &u.Full }, "pass, for language models refuse",
		""),
	one("pass_headers", listOf(headerName), func(u *site) *[]string { return &u.Pass }, "none",
		"Forgeable headers that weir still forwards, such as `X-Real-Ip`; see docs/reference/proxy.md."),
	{"credentials", "headers, each with an environment variable", "none",
		"Headers that weir adds, with environment variables for the complete values: `{Authorization: NTFY_AUTHORIZATION}`. They replace the caller's.", readSends},
	one("deliver_schedule", text("webhook or messaging", deliverySchedule), func(u *site) *string { return &u.Schedule }, "webhook",
		"Retries of deliveries: `webhook` after 5s, 5m, 30m, 2h, 5h and 10h; `messaging` after 1s, 2s and 4s, plus up to 500ms."),
	one("deliver_order", choice("go_on or stop", map[string]bool{"go_on": false, "stop": true}), func(u *site) *bool { return &u.Stop }, "go_on",
		"After a dead letter, later deliveries with its `Weir-Order-Key` continue, or `stop` until it is redriven, dropped or no longer kept."),
	one("deliver_open", choice("wait or dead", map[string]bool{"wait": false, "dead": true}), func(u *site) *bool { return &u.GivesUp.Open }, "wait",
		""),
	one("deliver_unknown", choice("repeat or dead", map[string]bool{"repeat": false, "dead": true}), func(u *site) *bool { return &u.GivesUp.Unknown }, "repeat",
		""),
	one("deliver_callback", word, func(u *site) *string { return &u.Callback }, "none",
		"One of `deliveries.callbacks`."),
	one("deliver_headers", listOf(headerName), func(u *site) *[]string { return &u.Keep }, "none",
		"Additional headers to store with deliveries, but never credentials; see docs/reference/deliveries.md."),
	{"keys", "scopes, each with its source", "none", "Sources of scopes: `header:NAME`, `query:NAME`, `caller` (name of the token or certificate) or `remote` (client address).", readKeys},
	{"priority", source.words, "normal", "Source of the call's priority, `high`, `normal` or `low`, for calls that wait for a limit or a concurrency slot. Waiting calls of low priority may use half of `bounds`, in total and per caller; further calls get 503.", readPriority},
	one("callers", boolean, func(u *site) *bool { return &u.counts }, "false", "Charges requests to the limits in the file's `callers`. Headers that identify callers are then not forwarded, unless `pass_headers` lists them."),
	one("paths", choice("case-sensitive or case-insensitive", map[string]bool{"case-sensitive": false, "case-insensitive": true}), func(u *site) *bool { return &u.anyCase }, "case-sensitive",
		"`case-insensitive` for upstreams that treat `/ADMIN` as `/admin`, such as IIS."),
	{"operations", "operations by name", "none", "Named kinds of requests; the first match applies.", readOperations},
	one("undeclared", choice("pass or refuse", map[string]bool{"pass": false, "refuse": true}), func(u *site) *bool { return &u.Closed }, "pass",
		""),
	{"limits", "limits by name, or off", "none", "Limits by name. `NAME: 100/s` is short for `NAME: {rate: 100/s}`; `NAME: off` removes one of a preset.", readLimits},
	{"retry", "fields, the name of a schedule, or off", "3 attempts", "When to retry. `NAME` is short for `{schedule: NAME}`.", readRetry},
	{"budget", "fields, or off", "10% and 1/s", "Bound on retries, relative to first attempts.", readBudget},
	{"quota", "fields, the name of a schedule, or off", "off", "Retry quota of the AWS SDKs, instead of `budget`.", readQuota},
	{"breaker", "fields, the name of a schedule, or off", "half of 20 calls or more in 10s, or 10 in a row", "When to stop calling the upstream. A call counts once, regardless of attempts. `NAME` is short for `{schedule: NAME}`.", readBreaker},
	{"concurrency", "auto, a number, fields, or off", "`auto`; `off` for language models, and in a file with `decide`", "Calls in flight; see docs/explanation/recovery.md.", readConcurrency},
	{"timeouts", "fields", "see its table", "Timeouts of the parts of a call.", readTimeouts},
	{"connections", "fields", "see its table", "Idle connections to keep. `concurrency` bounds calls.", readConnections},
	one("max_wait", orOff(duration, -1), func(u *site) *time.Duration { return &u.Policy.MaxWait }, "10s",
		"Longest wait for a turn; `off` refuses immediately."),
	{"ask_again", "fields, the name of a schedule, or off", "off", "Retries calls that a limit refuses, by this schedule, instead of queueing them. `not-enough-tokens` retries after 2, 4 and 8 seconds. `NAME` is short for `{schedule: NAME}`.", readAskAgain},
	{"fair", "fields, or a scope", "language models: `caller` (user, token name, run or API key); with a key `run`: by run; with `deliver`: direct calls first, 5% for deliveries; otherwise by arrival; with a store, by priority first", "Waiting calls take turns by the value of a scope.", readFair},
	one("max_pause", duration, func(u *site) *time.Duration { return &u.Policy.MaxPause }, "15m",
		""),
	one("pause_scope", word, func(u *site) *string { return &u.PauseScope }, "each credential is an account; the JWTs of one subject are one",
		"Scope in `keys` that identifies the account of the caller's credential. A throttle pauses all credentials of the account. It has no effect where weir adds the credential."),
	one("grpc", boolean, func(u *site) *bool { return &u.GRPC }, "false",
		"The upstream speaks gRPC, at `h2c://` or `https://`; see docs/how-to/call-grpc.md."),
	one("mcp", boolean, func(u *site) *bool { return &u.mcp }, "false",
		"The upstream is an MCP server."),
	{"websocket", "fields", "see its table", "Settings for routes with `websocket: true`; see docs/how-to/limit-websockets.md.", readSockets},
	{"aws", "fields", "off", "The upstream is an AWS service, and weir signs requests; see docs/how-to/call-aws.md. `{}` uses the service and region of the client's signature.", readAWS},
	{"llm", "fields", "off", "The upstream is a language model; see docs/how-to/call-language-models.md.", readLLM},
	{"jobs", "fields", "off", "Bounds concurrent DRS jobs for callers of `decide`; see docs/how-to/call-aws.md.", readJobs},
	{"classify", "fields", "none", "Classes of statuses and codes of this upstream.", readClassify},
}

func nothing(*decoder, *node, *site) {}

const firstUpstream = "write upstreams: {NAME: {url: https://...}}"

var replay = form[int64]{"a size (64KiB, 1MiB)", func(d *decoder, n *node) (int64, bool) {
	v, ok := size(0, mostReplay).read(d, n)
	if v == 0 {
		v = -1
	}
	return v, ok
}}

func readUpstreams(d *decoder, n *node, f *document) {
	named := d.namedAtMost(n, mostUpstreams)
	d.tiers = tiers(named)
	for _, e := range named {
		u := d.readUpstream(e.Name, e.Value)
		f.Upstreams = append(f.Upstreams, u.Upstream)
		f.learns = append(f.learns, u.learns)
		if u.at != nil {
			put(&f.Places, u.Name, u.at)
		}
		if u.jobs != nil {
			put(&f.Jobs, u.Name, *u.jobs)
		}
		if u.llm != nil {
			put(&f.LLM, u.Name, *u.llm)
		}
		if u.counts {
			put(&f.Counted, u.Name, true)
		}
		if u.aws != nil {
			put(&f.AWS, u.Name, *u.aws)
		}
		if u.sends != nil {
			put(&f.Sends, u.Name, u.sends)
		}
		f.owned = append(f.owned, u.owned...)
		for i, r := range u.Routes {
			f.places = append(f.places, u.place(i, r, e.Key))
		}
	}
	if len(n.Fields) == 0 && n.Kind != doc.Scalar && n.Kind != doc.List {
		d.Bad(n, firstUpstream, "has no upstreams")
	}
}

// put sets a value, and creates the map if necessary.
func put[V any](m *map[string]V, name string, v V) {
	if *m == nil {
		*m = make(map[string]V)
	}
	(*m)[name] = v
}

// readUpstream reads one upstream, laid over its preset.
func (d *decoder) readUpstream(name string, n *node) *site {
	u := &site{Upstream: Upstream{Name: name, Replay: httpx.DefaultReplay}}
	if !d.IsMapping(n) {
		return u
	}
	n = d.overlay(n, d.tiers[name])
	if d.overlaid != nil {
		d.overlaid[name] = n
	}
	u.retries, u.at = n.Get("retry"), placesOf(n)
	object(d, n, upstreamFields, u)
	for i := range u.Policy.Operations {
		u.Policy.Operations[i].AnyCase = u.anyCase
	}
	d.checkPairs(n, u)
	u.learns = n.Get("concurrency") == nil && u.llm == nil
	if n.Get("url") == nil {
		d.Bad(n, "", "has no url")
	}
	if n.Get("routes") == nil {
		u.Routes = usualRoutes(u)
	}
	live := len(u.Policy.Limits)
	u.Policy.Limits = append(u.Policy.Limits, u.Policy.Shadow...) // they are settled and checked alike
	settleLLM(n, u)
	settlePriority(n, u)
	settleRuns(n, u)
	d.settleSockets(n, u)
	d.env.apply(&u.Policy, live)
	d.checkScopes(n, u)
	d.checkJobs(n, u)
	d.checkLLM(n, u)
	d.settleGRPC(n, u)
	d.settleMCP(n, u)
	if u.aws == nil && u.llm == nil && !u.hasSockets() { // otherwise its operations have names already
		d.checkOperations(n, &u.Upstream)
	}
	copy(u.Policy.Shadow, u.Policy.Limits[live:])
	u.Policy.Limits = u.Policy.Limits[:live]
	d.checkPolicy(n, &u.Upstream)
	if u.off || d.env.off {
		u.Policy.Limits, u.Policy.Shadow = nil, nil
	}
	return u
}

// checkPairs reports fields that exclude each other.
func (d *decoder) checkPairs(n *node, u *site) {
	if u.sends != nil && (u.aws != nil || u.llm != nil) {
		d.Bad(n.Get("credentials"), "remove it", "with aws, weir signs requests; with llm, use key_env")
	}
	if u.StaleIfError > 0 && (u.aws != nil || u.llm != nil || u.GRPC) {
		d.Bad(n.Get("stale_if_error"), "remove it", "answers are not kept for upstreams with aws, llm or grpc; language models have llm.cache")
	}
	if b, q := n.Get("budget"), n.Get("quota"); b != nil && q != nil && !isOff(q) && !alone(b, "all") {
		d.Bad(b, "remove one of them", "quota cannot be combined with budget, except budget.all")
	}
}

// usualRoutes returns the routes of an upstream without configured routes.
func usualRoutes(u *site) []proxy.Route {
	if u.GRPC {
		return []proxy.Route{{}} // clients put nothing before method names
	}
	return []proxy.Route{{Path: "/" + u.Name + "/", Strip: true}}
}

// readURL reads the URL. It never repeats text that may be a password.
func readURL(d *decoder, n *node, u *site) {
	s, ok := d.Str(n, "a URL")
	if !ok {
		return
	}
	at, err := url.Parse(s)
	if err == nil {
		at.Host = asciiHost(at.Host)
	}
	switch {
	case strings.Contains(s, "@"):
		d.Bad(n, "have the caller send the credentials", "must not contain a user name or password")
	case err != nil:
		d.Bad(n, "write it as https://host/path", "%s: is not a URL", doc.Quote(s))
	case at.Scheme != "http" && at.Scheme != "https" && at.Scheme != h2c:
		d.Bad(n, "write it as https://host/path", "%s: must begin with http://, https:// or h2c://", doc.Quote(s))
	case !goodHost(at.Hostname()) || !goodPort(at):
		d.Bad(n, "write it as https://host/path", "%s: has no host", doc.Quote(s))
	case at.RawQuery != "" || at.ForceQuery || strings.Contains(s, "#"):
		d.Bad(n, "", "%s: must have no query and no fragment", doc.Quote(s))
	case dotted(at.Path):
		d.Bad(n, "", "%s: must have no . or .. in its path", doc.Quote(s))
	default:
		if u.URL = at; at.Scheme == h2c {
			at.Scheme, u.HTTP2 = "http", true
		}
	}
}

func dotted(path string) bool {
	return slices.ContainsFunc(strings.Split(path, "/"), func(s string) bool { return s == "." || s == ".." })
}

var timeoutFields = []field[weir.Timeouts]{
	one("connect", orOff(duration, -1), func(t *weir.Timeouts) *time.Duration { return &t.Connect }, "5s", "To connect."),
	one("tls", orOff(duration, -1), func(t *weir.Timeouts) *time.Duration { return &t.TLS }, "5s", "For the TLS handshake."),
	one("headers", orOff(duration, -1), func(t *weir.Timeouts) *time.Duration { return &t.Headers }, "5s", "From the end of the request to the response headers."),
	one("attempt", orOff(duration, -1), func(t *weir.Timeouts) *time.Duration { return &t.Attempt }, "10s", "One attempt, including sending the body, until the response headers."),
	one("call", orOff(duration, -1), func(t *weir.Timeouts) *time.Duration { return &t.Call }, "60s", "All attempts and delays, until the response headers."),
	one("idle", orOff(duration, -1), func(t *weir.Timeouts) *time.Duration { return &t.Idle }, "30s", "Longest silence in a response body, except on upgraded connections. Time in which the caller does not read is not counted. For gRPC: silence in both directions, 1h by default."),
	one("body", orOff(duration, -1), func(t *weir.Timeouts) *time.Duration { return &t.Body }, "off", "A complete body, of a request or a response."),
	one("upload_idle", orOff(duration, -1), func(t *weir.Timeouts) *time.Duration { return &t.UploadIdle }, "`idle` if set, else 60s", ""),
	one("upload_rate", orOff(size(1, 1<<40), -1), func(t *weir.Timeouts) *int64 { return &t.UploadRate }, "100B", "Lowest rate per second of a request body, averaged over 30s."),
	one("upload_over", duration, func(t *weir.Timeouts) *time.Duration { return &t.UploadOver }, "30s", ""),
}

func readTimeouts(d *decoder, n *node, u *site) { object(d, n, timeoutFields, &u.Policy.Timeouts) }

var connectionFields = []field[proxy.Idle]{
	one("idle", count[int](1), func(c *proxy.Idle) *int { return &c.Most }, "256", "Idle connections."),
	one("idle_per_host", count[int](1), func(c *proxy.Idle) *int { return &c.PerHost }, "`idle`", "Idle connections per host. An upstream has one host, so the smaller of both values applies."),
	one("idle_for", duration, func(c *proxy.Idle) *time.Duration { return &c.For }, "90s", "How long idle connections are kept. Choose less than the upstream's value."),
}

func readConnections(d *decoder, n *node, u *site) { object(d, n, connectionFields, &u.Idle) }

var classifyFields = []field[classify.Rules]{
	one("throttled", listOf(code), func(r *classify.Rules) *[]string { return &r.Throttled }, "none", "Refused because of a rate and not processed: safe to repeat."),
	one("failed", listOf(code), func(r *classify.Rules) *[]string { return &r.Failed }, "none", "Retried if the operation may be repeated."),
	one("rejected", listOf(code), func(r *classify.Rules) *[]string { return &r.Rejected }, "none", "Never repeated."),
}

var code = form[string]{"codes and statuses", word.read}

func readClassify(d *decoder, n *node, u *site) { object(d, n, classifyFields, &u.Policy.Classify) }
