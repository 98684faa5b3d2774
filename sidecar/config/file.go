package config

import (
	"log/slog"
	"path/filepath"
	"regexp"
	"time"

	"github.com/seed1158cd35/weir/internal/doc"
)

const (
	defaultListen = "127.0.0.1:8080"
	defaultAdmin  = "127.0.0.1:8081"
	defaultDrain  = 30 * time.Second
	defaultHeader = 64 << 10
	defaultLines  = 10
)

// A document is a file while it is read.
type document struct {
	File
	adminOpen bool
	places    []place // of all routes
	owned     []owned // of all upstreams
	learns    []bool  // of each upstream: see site
}

var documentFields = []field[document]{
	one("listen", address, func(f *document) *string { return &f.Listen }, defaultListen,
		"Where requests come in: HTTP/1.1 and h2c, or HTTPS with `tls`. `:8080` listens on every address."),
	one("admin", orOff(address, ""), func(f *document) *string { return &f.Admin }, defaultAdmin,
		"Where metrics and status are shown."),
	one("admin_open", boolean, func(f *document) *bool { return &f.adminOpen }, "false",
		"Lets `admin` be an address that other machines reach. From there `/metrics`, `/livez` and `/readyz` are for everyone, all else for those with a token or a certificate."),
	{"admin_tokens", "tokens by name", "none", "Who may use the admin listener, each by `Authorization: Bearer`, wherever they come from.", readAdminTokens},
	one("admin_client_ca", word, func(f *document) *string { return &f.AdminAccess.ClientCA }, "none",
		"A file of certificates, in PEM; who uses the admin listener must have one that they sign. It needs `tls`."),
	one("admin_auth", choice("all or most", map[string]bool{"all": true, "most": false}), func(f *document) *bool { return &f.AdminAll }, "most",
		"With `all`, metrics and health want a token or a certificate, too."),
	one("admin_tls", boolean, func(f *document) *bool { return &f.AdminTLS }, "true with `admin_client_ca`", "Serves the admin listener with the certificate of `tls`."),
	one("hosts", listOf(host), func(f *document) *[]string { return &f.Hosts }, "none",
		"Names under which callers know a loopback address, besides localhost and the hosts of routes."),
	one("origins", listOf(origin), func(f *document) *[]string { return &f.Origins }, "none",
		"The sites whose pages may have a browser send requests that get weir's credentials."),
	{"tokens", "tokens by name", "none", "Who may call, each by its token: as its API key, as its access key id of AWS, or in `X-Weir-Token`; see docs/security.md.", readAccessTokens},
	{"jwt", "fields", "none", "Tokens of others (JWT) that callers may show in place of one of `tokens`, with keys from a URL; see docs/security.md.", readJWT},
	one("client_ca", word, func(f *document) *string { return &f.Callable.ClientCA }, "none",
		"A file of certificates, in PEM; callers must have one that they sign. It needs `tls`."),
	one("open", boolean, func(f *document) *bool { return &f.Open }, "false",
		"Lets whoever reaches `listen` call with weir's credentials."),
	one("hash_env", word, func(f *document) *string { return &f.HashEnv }, "none",
		"The environment variable with a secret, the same for the whole fleet. The values by which callers are counted are kept and shown as an HMAC by it; without it, only what looks like a credential is hidden, and metrics have no callers."),
	one("harmless", listOf(form[string]{"scopes", word.read}), func(f *document) *[]string { return &f.Harmless }, "`global`, `route`, `model`, `operation`, `region`, `plan`",
		"Scopes, besides these, whose values are kept and shown as they are, in metrics, too."),
	{"tls", "fields", "plain HTTP", "The certificate of `listen`.", readTLS},
	one("drain", orOff(duration, 0), func(f *document) *time.Duration { return &f.Drain }, "30s",
		"How long calls under way, and attempts of deliveries, may take once weir was told to stop. `off` cuts them at once."),
	one("lame_duck", orOff(duration, 0), func(f *document) *time.Duration { return &f.LameDuck }, "off",
		"How long weir serves as before once it was told to stop, while `/readyz` says that it is not ready, so that who balances its callers sends them elsewhere; then it drains. Five seconds where that looks each second."),
	{"bounds", "fields", "see there", "How many connections, streams and requests callers may have at once, at each listener.", readBounds},
	one("max_header", size(1<<10, 16<<20), func(f *document) *int64 { return &f.MaxHeader }, "64KiB",
		"Largest header of a request."),
	one("log", level, func(f *document) *slog.Level { return &f.Log }, "info", "What is logged."),
	one("log_each_second", orOff(count[int](1), 0), func(f *document) *int { return &f.LogEach }, "10",
		"How many lines a second are written that say the same: the same message, upstream, limit (or operation) and reason. The next one tells how many were left out, as `suppressed`. `off` writes all of them."),
	one("log_attempts", boolean, func(f *document) *bool { return &f.LogAttempts }, "false",
		"An access log: a line for each attempt, however it ended, of which `weir learn` makes limits."),
	{"store", "fields", "limits are this process's own", "Where limits, pauses and breakers are kept that several processes share; see docs/how-to/share-a-limit.md.", readStore},
	{"deliveries", "fields", "off", "Where requests are kept that are delivered later; see docs/deliveries.md.", readDeliveries},
	{"decide", "fields", "off", "Decisions for programs that make their calls themselves; see docs/decide.md and docs/envoy.md.", readDecide},
	{"cloudwatch", "fields", "off", "Metrics for CloudWatch, as lines or through its API; see docs/cloudwatch.md.", readCloudWatch},
	{"notify", "fields", "off", "Messages to people when calls are given up, limits do not hold, a breaker opened, or the store is away; see docs/notify.md.", readNotify},
	{"traces", "fields", "off", "Where traces of calls are sent, by OpenTelemetry's protocol, and which; see docs/traces.md.", readTraces},
	{"metrics", "fields", "off", "Where metrics are sent, by OpenTelemetry's protocol, besides being shown; `{}` sends them where `traces` go. See docs/metrics.md.", readMetrics},
	{"callers", "fields, true, or off", "off", "Who may call how much, over all upstreams that are language models; see docs/llm.md.", readCallers},
	one("prices", word, func(f *document) *string { return &f.Prices }, "those of docs/llm.md", "A file with the prices of models, laid over those that weir knows; relative to the directory of weir.yaml."),
	{"upstreams", "fields", "required", "The APIs, by name: letters, digits, `-`, `_` and `.`.", readUpstreams},
}

// read makes a document of a tree.
func (d *decoder) read(root *node) *document {
	f := document{File: File{Listen: defaultListen, Admin: defaultAdmin, Drain: defaultDrain, MaxHeader: defaultHeader, LogEach: defaultLines}}
	d.callerScopes = scopesOf(root.Get("callers"))
	object(d, root, documentFields, &f)
	if f.Metrics != nil {
		f.Metrics.likeTraces(d, root.Get("metrics"), f.Traces)
	}
	f.Prices = d.beside(f.Prices)
	f.Callable.ClientCA, f.AdminAccess.ClientCA = d.beside(f.Callable.ClientCA), d.beside(f.AdminAccess.ClientCA)
	f.AdminTLS = f.AdminTLS || f.AdminAccess.ClientCA != "" && root.Get("admin_tls") == nil
	if root.Get("upstreams") == nil && (root.Kind == doc.Mapping || root.Kind == doc.Empty) {
		d.Bad(root, firstUpstream, "has no upstreams")
	}
	return &f
}

var tlsFields = []field[TLS]{
	one("cert", word, func(t *TLS) *string { return &t.Cert }, "required", "File of the certificate and its chain, in PEM; relative to the directory of weir.yaml."),
	one("key", word, func(t *TLS) *string { return &t.Key }, "required", "File of its private key, in PEM."),
}

func readTLS(d *decoder, n *node, f *document) {
	var t TLS
	if !object(d, n, tlsFields, &t) {
		return
	}
	for _, name := range []string{"cert", "key"} {
		if n.Get(name) == nil {
			d.Bad(n, "", "has no %s", name)
		}
	}
	f.TLS = &TLS{d.beside(t.Cert), d.beside(t.Key)}
}

// beside is a path relative to the file.
func (d *decoder) beside(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(d.File), path)
}

var goodName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// checkName takes names that can stand in paths, metrics and logs as they are.
func (d *decoder) checkName(n *node, name string) bool {
	if goodName.MatchString(name) {
		return true
	}
	d.Bad(n, "", "%s cannot be a name: want letters, digits, -, _ and ., at most 63", doc.Quote(name))
	return false
}
