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

// A site is an upstream while it is read.
type site struct {
	Upstream
	off     bool              // its limits are turned off
	retries *node             // of the upstream, for operations to build on
	routes  []*node           // where Routes stand; none if the file says no routes
	owned   []owned           // operations that say something of their own
	sends   map[string]string // headers that weir adds, and the variables with their values
	aws     *AWS              // nil unless it is a service of AWS
	jobs    *Jobs             // nil unless its jobs are bounded
	llm     *LLM              // nil unless it is a language model
	anyCase bool              // its paths are the same in all letter cases
	counts  bool              // its requests are charged to their callers
	learns  bool              // the file says nothing of concurrency, and it may be learnt
	at      map[string]string // where its fields stand
}

// place is where a route stands; key is where the upstream does.
func (u *site) place(i int, r proxy.Route, key *node) place {
	if i < len(u.routes) {
		return place{r, u.Name, u.routes[i], false}
	}
	return place{r, u.Name, key, true}
}

var upstreamFields = []field[site]{
	{"url", "a URL", "required", "`http` or `https`, a host, and maybe a path that is put before that of requests; `h2c` is HTTP/2 without encryption.", readURL},
	{"preset", "the name of a preset", "none", "Where everything comes from that the upstream does not say itself; see [Presets](#presets).", nothing},
	{"routes", "a list of routes", "`{path: /NAME/, strip: true}`, with `grpc` `{path: /}`", "How requests find the upstream.", readRoutes},
	one("replay", orOff(replay, -1), func(u *site) *int64 { return &u.Replay }, "1MiB",
		"How much of a request's body is kept to send it again. A larger body is sent, but once."),
	one("max_body", orOff(size(1, 1<<50), 0), func(u *site) *int64 { return &u.MaxBody }, "any",
		"The largest body of a request that is taken."),
	one("full", choice("pass or refuse", map[string]proxy.Full{"pass": proxy.FullPass, "refuse": proxy.FullRefuse}), func(u *site) *proxy.Full { return &u.Full }, "pass, for language models refuse",
		"What becomes of a body that was to be held when what weir may hold in memory is full: it is sent on, but once, and what it asks of a model is estimated by its size; or it is refused with 503 and `Retry-After`, or with 413 if it could never be held."),
	one("pass_headers", listOf(headerName), func(u *site) *[]string { return &u.Pass }, "none",
		"Headers of callers that are sent on although anybody could forge them: `X-Real-Ip`, `X-Forwarded-For`; see docs/reference/proxy.md."),
	{"credentials", "headers, each with an environment variable", "none",
		"Credentials that weir adds, in place of the caller's: `{Authorization: NTFY_AUTHORIZATION}`. The variable holds the whole value of the header (`Bearer ...`). Also for requests that are delivered later, with which no credentials are stored.", readSends},
	one("deliver_schedule", text("webhook or messaging", deliverySchedule), func(u *site) *string { return &u.Schedule }, "webhook",
		"When a delivery that failed is sent again: `webhook` after 5s, 5m, 30m, 2h, 5h and 10h; `messaging` after 1s, 2s and 4s, and up to 500ms more."),
	one("deliver_order", choice("go_on or stop", map[string]bool{"go_on": false, "stop": true}), func(u *site) *bool { return &u.Stop }, "go_on",
		"What those do that come after a dead letter under its `Weir-Order-Key`: `stop` has them wait (`created`) until it was redriven and delivered, or dropped, or is not kept any more. A change is for what dies from then on: what waits already is freed by `weir dead redrive` or `weir dead drop` of what it waits for."),
	one("deliver_open", choice("wait or dead", map[string]bool{"wait": false, "dead": true}), func(u *site) *bool { return &u.GivesUp.Open }, "wait",
		"What becomes of deliveries that are due while the breaker is open: they wait, and burn no attempt, or are dead letters (`unavailable`)."),
	one("deliver_unknown", choice("repeat or dead", map[string]bool{"repeat": false, "dead": true}), func(u *site) *bool { return &u.GivesUp.Unknown }, "repeat",
		"What becomes of a delivery that may have been made, as its answer was lost or weir was killed meanwhile: it goes again, by the schedule, or is a dead letter (`unknown`) for people to look at."),
	one("deliver_callback", word, func(u *site) *string { return &u.Callback }, "none",
		"Which of `deliveries.callbacks` is told when a delivery is over."),
	one("deliver_headers", listOf(headerName), func(u *site) *[]string { return &u.Keep }, "none",
		"Headers of callers that are kept of a request to be delivered later, besides those of docs/deliveries.md and of the preset. Not those that hold credentials."),
	{"keys", "scopes, each with its source", "none", "Where the values of scopes come from: `header:NAME`, `query:NAME`, `caller` for the name of the token or certificate, or `remote` for the client's address.", readKeys},
	{"priority", source.words, "normal", "Where the caller says whether a call is `high`, `normal` or `low`: calls that wait for a limit, or for a slot among those in flight (`concurrency`), go in this order. Calls of low priority that wait take at most half of the listener's connections and requests (`bounds`), and half of a caller's; the next are refused with 503. Unless there is `fair`, the weights are those of its defaults, and calls of a priority go in the order in which they came.", readPriority},
	one("callers", boolean, func(u *site) *bool { return &u.counts }, "false", "Whether requests are charged to what callers may have, once each: see `callers` beside `upstreams`. For language models `llm.callers` says so. Headers that say who calls are not sent on then, but for those of `pass_headers`."),
	one("paths", choice("case-sensitive or case-insensitive", map[string]bool{"case-sensitive": false, "case-insensitive": true}), func(u *site) *bool { return &u.anyCase }, "case-sensitive",
		"Whether the upstream takes `/ADMIN` for `/admin`, as IIS and ASP.NET do. With `case-insensitive` a request is of an operation in whatever letters its path is written."),
	{"operations", "operations by name", "none", "How requests are told apart: the first that matches.", readOperations},
	one("undeclared", choice("pass or refuse", map[string]bool{"pass": false, "refuse": true}), func(u *site) *bool { return &u.Closed }, "pass",
		"What becomes of requests that are of no operation that is declared or, with `llm` and `aws`, known: they pass as `default`, under the limits that count everything, or are refused."),
	{"limits", "limits by name, or off", "none", "How much may go in how much time. `NAME: 100/s` is short for `NAME: {rate: 100/s}`; `NAME: off` removes one of a preset.", readLimits},
	{"retry", "fields, the name of a schedule, or off", "3 attempts", "When to try again. `NAME` is short for `{schedule: NAME}`.", readRetry},
	{"budget", "fields, or off", "10% and 1/s", "How many retries may be added to first attempts.", readBudget},
	{"quota", "fields, the name of a schedule, or off", "off", "The retry quota of the AWS SDKs, in place of `budget`.", readQuota},
	{"breaker", "fields, the name of a schedule, or off", "half of 20 calls or more in 10s, or 10 in a row", "When to stop calling the upstream. A call counts once, however many attempts it takes. `NAME` is short for `{schedule: NAME}`.", readBreaker},
	{"concurrency", "auto, a number, fields, or off", "`auto`; `off` for language models, and in a file with `decide`", "How many calls may be in flight; see docs/explanation/recovery.md. `auto` or `NUMBER` is short for `{limit: ...}`.", readConcurrency},
	{"timeouts", "fields", "see there", "How long the parts of a call may take.", readTimeouts},
	{"connections", "fields", "see there", "How many connections that nobody uses are kept. Those in use have no bound of their own; `concurrency` bounds calls.", readConnections},
	one("max_wait", orOff(duration, -1), func(u *site) *time.Duration { return &u.Policy.MaxWait }, "10s",
		"Longest wait for a turn. Where it is not set, few calls wait up to a minute for a slot while the upstream stands still; see docs/explanation/recovery.md. `off` refuses at once."),
	{"ask_again", "fields, the name of a schedule, or off", "off", "Has calls that find too few units in a limit wait by this schedule where they are and ask anew, in place of in line; who comes meanwhile may go first. `not-enough-tokens` asks 2, 4 and 8 seconds later. `NAME` is short for `{schedule: NAME}`.", readAskAgain},
	{"fair", "fields, or a scope", "for language models `caller`: the user, else the name of the token, else the API key; where `deliver` is set, direct calls go first and leave deliveries a twentieth; else those who wait go in the order in which they came, for a limit in a store by priority first", "Has those who wait for a limit go in turn, flow by flow. `SCOPE` is short for `{by: SCOPE}`.", readFair},
	one("max_pause", duration, func(u *site) *time.Duration { return &u.Policy.MaxPause }, "15m",
		"Longest time that a hint of the upstream can stop everyone, quotas apart."),
	one("pause_scope", word, func(u *site) *string { return &u.PauseScope }, "each credential is an account",
		"The scope, one of `keys`, whose value is the account of the caller's credential. When the upstream throttles a call, all credentials of the account pause. It has no effect where weir adds the credential."),
	one("grpc", boolean, func(u *site) *bool { return &u.GRPC }, "false",
		"That it speaks gRPC, at `h2c://` or `https://`: statuses are read and written, and all of it is HTTP/2; see docs/grpc.md."),
	{"websocket", "fields", "see there", "How the connections of routes with `websocket: true` are served; see docs/websockets.md.", readSockets},
	{"aws", "fields", "off", "That it is a service of AWS, whose requests are signed anew; see docs/aws.md. `{}` takes service and region from the client's signature.", readAWS},
	{"llm", "fields", "off", "That it is a language model: tokens, streams, and who answers when it does not; see docs/llm.md.", readLLM},
	{"jobs", "fields", "off", "Bounds the jobs that DRS runs at once, for programs that ask `decide` before they start one; see docs/aws.md.", readJobs},
	{"classify", "fields", "none", "What statuses and codes mean, if this upstream means something else than most.", readClassify},
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
	named := d.named(n)
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

// put makes the map first if there is none.
func put[V any](m *map[string]V, name string, v V) {
	if *m == nil {
		*m = make(map[string]V)
	}
	(*m)[name] = v
}

// readUpstream reads one upstream: what its preset says, and itself over it.
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
	settleLLM(n, u)
	settlePriority(n, u)
	d.settleSockets(n, u)
	d.env.apply(&u.Policy)
	d.checkScopes(n, u)
	d.checkJobs(n, u)
	d.checkLLM(n, u)
	d.settleGRPC(n, u)
	if u.aws == nil && u.llm == nil && !u.hasSockets() { // its operations have names already
		d.checkOperations(n, &u.Upstream)
	}
	d.checkPolicy(n, &u.Upstream)
	if u.off || d.env.off {
		u.Policy.Limits = nil
	}
	return u
}

// checkPairs finds fields that do not go together.
func (d *decoder) checkPairs(n *node, u *site) {
	if u.sends != nil && (u.aws != nil || u.llm != nil) {
		d.Bad(n.Get("credentials"), "remove it", "with aws weir signs requests itself, and with llm it has key_env")
	}
	if b, q := n.Get("budget"), n.Get("quota"); b != nil && q != nil && !isOff(q) && !alone(b, "all") {
		d.Bad(b, "remove one of them", "quota stands in place of budget, but for all")
	}
}

// usualRoutes are those of an upstream that says none.
func usualRoutes(u *site) []proxy.Route {
	if u.GRPC {
		return []proxy.Route{{}} // clients put nothing before the names of methods
	}
	return []proxy.Route{{Path: "/" + u.Name + "/", Strip: true}}
}

// readURL never repeats what could be a password.
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
		d.Bad(n, "have the caller send the credentials", "must hold no user name or password")
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
	one("connect", orOff(duration, -1), func(t *weir.Timeouts) *time.Duration { return &t.Connect }, "5s", "To make a connection."),
	one("tls", orOff(duration, -1), func(t *weir.Timeouts) *time.Duration { return &t.TLS }, "5s", "To agree on encryption."),
	one("headers", orOff(duration, -1), func(t *weir.Timeouts) *time.Duration { return &t.Headers }, "5s", "From the end of the request to the headers of the answer."),
	one("attempt", orOff(duration, -1), func(t *weir.Timeouts) *time.Duration { return &t.Attempt }, "10s", "One attempt, until the headers of its answer; sending the body is part of it."),
	one("call", orOff(duration, -1), func(t *weir.Timeouts) *time.Duration { return &t.Call }, "60s", "All attempts, and the waits between them, until the headers of the answer."),
	one("idle", orOff(duration, -1), func(t *weir.Timeouts) *time.Duration { return &t.Idle }, "30s", "How long the body of an answer may bring nothing: then it is cut. Time in which nobody waits for it does not count; gRPC and connections that have changed their protocol have no such bound."),
	one("body", orOff(duration, -1), func(t *weir.Timeouts) *time.Duration { return &t.Body }, "off", "How long a whole body may take, of a request or of an answer."),
	one("upload_idle", orOff(duration, -1), func(t *weir.Timeouts) *time.Duration { return &t.UploadIdle }, "`idle` if that is given, else 60s", "How long the body of a request may bring nothing: then it is cut, and the upstream is not to blame. For gRPC, connections that change their protocol and routes with `stream: true` there is no such bound, and none of the next two."),
	one("upload_rate", orOff(size(1, 1<<40), -1), func(t *weir.Timeouts) *int64 { return &t.UploadRate }, "100B", "How much of the body of a request must come in a second, on the average of `upload_over`; what came sooner counts for later, for `upload_idle` at most."),
	one("upload_over", duration, func(t *weir.Timeouts) *time.Duration { return &t.UploadOver }, "30s", "See there."),
}

func readTimeouts(d *decoder, n *node, u *site) { object(d, n, timeoutFields, &u.Policy.Timeouts) }

var connectionFields = []field[proxy.Idle]{
	one("idle", count[int](1), func(c *proxy.Idle) *int { return &c.Most }, "256", "Of the upstream, in all."),
	one("idle_per_host", count[int](1), func(c *proxy.Idle) *int { return &c.PerHost }, "`idle`", "Of each of its hosts. An upstream's `url` has one, so the smaller of the two counts."),
	one("idle_for", duration, func(c *proxy.Idle) *time.Duration { return &c.For }, "90s", "How long each is kept. Less than the upstream keeps it, or requests meet a connection that it closes."),
}

func readConnections(d *decoder, n *node, u *site) { object(d, n, connectionFields, &u.Idle) }

var classifyFields = []field[classify.Rules]{
	one("throttled", listOf(code), func(r *classify.Rules) *[]string { return &r.Throttled }, "none", "Refused for rate and not done: safe to repeat."),
	one("failed", listOf(code), func(r *classify.Rules) *[]string { return &r.Failed }, "none", "Worth repeating where the operation may be repeated."),
	one("rejected", listOf(code), func(r *classify.Rules) *[]string { return &r.Rejected }, "none", "Never worth repeating."),
}

var code = form[string]{"codes and statuses", word.read}

func readClassify(d *decoder, n *node, u *site) { object(d, n, classifyFields, &u.Policy.Classify) }
