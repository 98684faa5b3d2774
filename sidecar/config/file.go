package config

import (
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
	places    []place // positions of all routes
	owned     []owned // of all upstreams
	learns    []bool  // by upstream; see site
}

var documentFields = []field[document]{
	one("listen", address, func(f *document) *string { return &f.Listen }, defaultListen,
		"Address for requests: HTTP/1.1 and h2c, or HTTPS with `tls`. `:8080` listens on all interfaces."),
	one("admin", orOff(address, ""), func(f *document) *string { return &f.Admin }, defaultAdmin,
		"Address for metrics and status."),
	one("admin_open", boolean, func(f *document) *bool { return &f.adminOpen }, "false",
		"Allows `admin` on addresses that other machines reach. They can read `/metrics`, `/livez` and `/readyz`; everything else needs a token or certificate."),
	{"admin_tokens", "tokens by name", "none", "", readAdminTokens},
	one("admin_client_ca", word, func(f *document) *string { return &f.AdminAccess.ClientCA }, "none",
		""),
	one("admin_auth", choice("all or most", map[string]bool{"all": true, "most": false}), func(f *document) *bool { return &f.AdminAll }, "most",
		""),
	one("admin_tls", boolean, func(f *document) *bool { return &f.AdminTLS }, "true with `admin_client_ca`", ""),
	one("hosts", listOf(host), func(f *document) *[]string { return &f.Hosts }, "none",
		"Additional host names that callers may use for a loopback address."),
	one("origins", listOf(origin), func(f *document) *[]string { return &f.Origins }, "none",
		"Origins of pages whose browser requests get weir's credentials."),
	{"tokens", "tokens by name", "none", "Callers' tokens, sent as the API key, as the AWS access key ID or in `X-Weir-Token`; see docs/explanation/security.md.", readAccessTokens},
	{"jwt", "fields", "none", "Accepts JSON Web Tokens instead of `tokens`; see docs/explanation/security.md.", readJWT},
	one("client_ca", word, func(f *document) *string { return &f.Callable.ClientCA }, "none",
		"PEM file of authorities for required client certificates. Needs `tls`."),
	one("open", boolean, func(f *document) *bool { return &f.Open }, "false",
		"Lets every client that reaches `listen` call with weir's credentials."),
	one("hash_env", word, func(f *document) *string { return &f.HashEnv }, "none",
		"Environment variable with a secret, the same in the whole fleet. weir then stores and shows callers' keys as HMACs."),
	one("harmless", listOf(form[string]{"scopes", word.read}), func(f *document) *[]string { return &f.Harmless }, "`global`, `route`, `model`, `operation`, `region`, `plan`",
		""),
	{"tls", "fields", "plain HTTP", "Certificate of `listen`.", readTLS},
	one("drain", orOff(duration, 0), func(f *document) *time.Duration { return &f.Drain }, "30s",
		"At shutdown, time for running calls and deliveries to finish. `off` ends them immediately."),
	one("lame_duck", orOff(duration, 0), func(f *document) *time.Duration { return &f.LameDuck }, "off",
		"At shutdown, time in which weir still serves calls while `/readyz` fails, so that load balancers stop sending calls. `drain` follows."),
	{"bounds", "fields", "see its table", "Bounds on connections, streams and requests, for each listener.", readBounds},
	one("max_header", size(1<<10, 16<<20), func(f *document) *int64 { return &f.MaxHeader }, "64KiB",
		""),
	{"log", level.words + ", or attempts", "info", "Lowest level that is logged. `attempts` is `info` with a line for each attempt.", readLog},
	one("log_each_second", orOff(count[int](1), 0), func(f *document) *int { return &f.LogEach }, "10",
		""),
	one("log_attempts", boolean, func(f *document) *bool { return &f.LogAttempts }, "false",
		""),
	{"store", "fields", "not shared", "Store for limits, pauses and breakers that processes share; see docs/how-to/share-a-limit.md.", readStore},
	{"deliveries", "fields", "off", "Store for requests to deliver later; see docs/reference/deliveries.md.", readDeliveries},
	{"decide", "fields", "off", "Decisions for programs that make calls themselves; see docs/reference/decisions.md and docs/how-to/use-envoy.md.", readDecide},
	{"cloudwatch", "fields", "off", "Metrics for CloudWatch; see docs/how-to/use-cloudwatch.md.", readCloudWatch},
	{"notify", "fields", "off", "Notifications for people; see docs/how-to/notify.md.", readNotify},
	{"traces", "fields", "off", "OpenTelemetry traces; see docs/how-to/trace.md.", readTraces},
	{"metrics", "true, or off", "off", "OpenTelemetry metrics, sent to the receiver of `traces` or of `OTEL_EXPORTER_OTLP_ENDPOINT`. See docs/reference/metrics.md.", readMetrics},
	one("old_metric_names", boolean, func(f *document) *bool { return &f.OldMetricNames }, "false", "Until 0.2.0: also serves renamed metrics under their old names. See docs/reference/metrics.md#renamed-metrics."),
	{"callers", "fields, true, or off", "off", "Limits per caller, across all language models; see docs/how-to/limit-users.md.", readCallers},
	one("prices", word, func(f *document) *string { return &f.Prices }, "built-in, docs/explanation/token-accounting.md", "File of model prices that override the built-in ones."),
	{"presets", "a text", "none", "Directory with your own presets; see docs/reference/configuration.md#presets.", func(*decoder, *node, *document) {}},
	{"upstreams", "fields", "required", "APIs by name: letters, digits, `-`, `_` and `.`.", readUpstreams},
}

func readLog(d *decoder, n *node, f *document) {
	if n.Kind == doc.Scalar && n.Text == "attempts" {
		f.LogAttempts = true
	} else if v, ok := level.read(d, n); ok {
		f.Log = v
	}
}

// read turns a tree into a document.
func (d *decoder) read(root *node) *document {
	f := document{File: File{Listen: defaultListen, Admin: defaultAdmin, Drain: defaultDrain, MaxHeader: defaultHeader, LogEach: defaultLines}}
	d.root, d.bearers = root, readTokens(d, root.Get("tokens"))
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
	one("cert", word, func(t *TLS) *string { return &t.Cert }, "required", "PEM file of the certificate and its chain."),
	one("key", word, func(t *TLS) *string { return &t.Key }, "required", "PEM file of its private key."),
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

// beside returns a path relative to the file's directory.
func (d *decoder) beside(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(d.File), path)
}

var goodName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// checkName accepts names that need no escaping in paths, metrics and logs.
func (d *decoder) checkName(n *node, name string) bool {
	if goodName.MatchString(name) {
		return true
	}
	d.Bad(n, "", "%s cannot be a name: want letters, digits, -, _ and ., at most 63", doc.Quote(name))
	return false
}
