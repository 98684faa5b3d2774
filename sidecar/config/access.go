package config

import (
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/internal/auth"
	"github.com/seed1158cd35/weir/internal/doc"
)

// Access configures who may use a listener. Secrets are in environment variables.
type Access struct {
	Tokens   []auth.TokenConfig
	ClientCA string // path of a file; "" means that the listener requests no client certificates
	JWT      *JWT   // nil means that JWTs of other issuers are refused
}

// JWT configures which JWTs of other issuers are accepted, and what they may use.
type JWT struct {
	URL      string // URL of the keys
	Issuer   string
	Audience string
	Secret   string            // environment variable with a secret that verifies tokens instead of keys; see Claims
	Timeout  time.Duration     // for fetching the keys
	Scopes   map[string]string // by upstream: the scope that a token must have
}

var jwtFields = []field[JWT]{
	one("jwks", keysURL, func(j *JWT) *string { return &j.URL }, "required without `secret_env`", "URL of the JSON Web Key Set: `https`, or `http` on this machine."),
	one("secret_env", word, func(j *JWT) *string { return &j.Secret }, "none", "Instead of `jwks`: environment variable with the secret of HS256, HS384 or HS512. The tokens identify users: `callers.keys` reads their claims. `issuer` and `audience` are then optional."),
	one("issuer", word, func(j *JWT) *string { return &j.Issuer }, "required", "Required issuer (`iss`)."),
	one("audience", word, func(j *JWT) *string { return &j.Audience }, "required", "Required audience (`aud`)."),
	one("timeout", duration, func(j *JWT) *time.Duration { return &j.Timeout }, "5s", ""),
	{"scopes", "upstreams, each with a scope", "none", "Scopes that tokens need for upstreams: `{orders: orders.write}`. Other upstreams accept every valid token.", readScopes},
}

var keysURL = text("a URL (https://login.example.com/keys)", func(s string) (string, string, string) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
		return "", "is not a URL", "write it as https://login.example.com/keys"
	case u.User != nil:
		return "", "must not contain a user name or password", ""
	case u.Scheme == "http" && !auth.Loopback(u.Hostname()):
		return "", "without TLS, anyone on the network path could replace the keys", "use https"
	}
	return s, "", ""
})

func readScopes(d *decoder, n *node, j *JWT) {
	j.Scopes = make(map[string]string)
	for _, e := range d.named(n) {
		j.Scopes[e.Name], _ = word.read(d, e.Value)
	}
}

func readJWT(d *decoder, n *node, f *document) {
	j := JWT{Timeout: 5 * time.Second}
	if !object(d, n, jwtFields, &j) {
		return
	}
	if j.Secret != "" {
		if n.Get("jwks") != nil || n.Get("scopes") != nil {
			d.Bad(n.Get("secret_env"), "remove secret_env, or remove jwks and scopes", "set only one of jwks and secret_env")
		}
		if at := d.root.Get("callers"); at == nil || isOff(at) {
			d.Bad(n.Get("secret_env"), "add callers: {keys: {user: \"claim:sub\"}}", "jwt has no effect, because no key of callers reads a claim")
		}
		return
	}
	for _, name := range []string{"jwks", "issuer", "audience"} {
		if n.Get(name) == nil {
			d.Bad(n, "", "has no %s", name)
		}
	}
	f.Callable.JWT = &j
}

// none reports whether callers need no credentials.
func (a Access) none() bool { return len(a.Tokens) == 0 && a.ClientCA == "" && a.JWT == nil }

// Auth reads the secrets and the certificates.
func (a Access) Auth(env func(string) (string, bool), read func(string) ([]byte, error)) (*auth.Auth, error) {
	return auth.New(a.Tokens, a.ClientCA, env, read)
}

// origin reads the origin of a page, as browsers send it.
var origin = text("an origin (https://app.example)", func(s string) (string, string, string) {
	u, err := url.Parse(s)
	if err == nil && u.Host != "" { // browsers send the ASCII form
		host := asciiHost(u.Host)
		s, u.Host = strings.Replace(s, u.Host, host, 1), host
	}
	switch {
	case s == "*":
		return "", "would let every page use weir's credentials", "name the origins of your pages"
	case err != nil || u.Scheme == "" || !goodHost(u.Hostname()) || !goodPort(u):
		return "", "is not an origin", "write it as https://app.example"
	case s != u.Scheme+"://"+u.Host:
		return "", "must be a scheme and a host, and nothing else", "write " + u.Scheme + "://" + u.Host
	}
	return strings.ToLower(s), "", ""
})

// readAccessTokens distributes the tokens, except those for decide, to callers and operators.
func readAccessTokens(d *decoder, n *node, f *document) {
	for _, t := range d.bearers {
		switch {
		case t.admin:
			f.AdminAccess.Tokens = append(f.AdminAccess.Tokens, d.tokens(t.at, t.holder)...)
		case !t.decides:
			f.Callable.Tokens = append(f.Callable.Tokens, d.tokens(t.at, t.holder)...)
		case d.root.Get("decide") == nil:
			d.Bad(t.at.Value, "add decide: {listen: 127.0.0.1:8082}, or remove reports and keys", "is a token for decide, but the file has no decide")
		}
	}
}

// A holder has a token: one secret, or several during a rotation.
type holder struct {
	Envs      []string
	Upstreams []string
}

const secretMeaning = "Environment variable with the secret, or a list of variables, each with a valid secret."

var variablesOf = listOf(form[string]{"variables", word.read})

var adminTokenFields = []field[holder]{
	one("env", variablesOf, func(t *holder) *[]string { return &t.Envs }, "required", ""),
}

func readAdminTokens(d *decoder, n *node, f *document) {
	for _, e := range d.named(n) {
		var t holder
		if object(d, e.Value, adminTokenFields, &t) {
			f.AdminAccess.Tokens = append(f.AdminAccess.Tokens, d.tokens(e, t)...)
		}
	}
}

// tokens returns one token for each secret of a holder. It reports an error for a token without a variable.
func (d *decoder) tokens(e entry, h holder) (all []auth.TokenConfig) {
	at := e.Value.Get("env")
	if at == nil {
		d.Bad(e.Value, "", "has no env")
	} else if len(h.Envs) == 0 && at.Kind == doc.List && len(at.Items) == 0 {
		d.Bad(at, "", "names no variable")
	}
	for _, env := range h.Envs {
		t := auth.TokenConfig{Name: e.Name, Env: env, Upstreams: h.Upstreams}
		if err := t.Validate(); err != nil {
			d.Bad(at, "", "%v", err)
		}
		all = append(all, t)
	}
	return all
}

// checkAccess checks that unknown callers cannot use weir's credentials.
func (d *decoder) checkAccess(root *node, f *document) {
	for i := range f.Upstreams {
		u := &f.Upstreams[i]
		u.Credentials = f.addsCredentials(u.Name)
		u.Identifies = f.identifies(u.Name)
	}
	d.checkCAs(root, f)
	d.checkTokens(root.Get("tokens"), f)
	d.checkJWT(root.Get("jwt").Get("scopes"), f)
	d.checkTokens(root.Get("decide").Get("tokens"), f)
	if loopback(f.Listen) || f.Open || !f.Callable.none() {
		return
	}
	var bare []string
	for _, u := range f.Upstreams {
		if u.Credentials && !u.Identifies {
			bare = append(bare, u.Name)
		}
	}
	if len(bare) == 0 {
		return
	}
	at := root.Get("listen")
	if at == nil {
		at = root
	}
	slices.Sort(bare)
	d.Bad(at, "add tokens, jwt, client_ca with tls, or jwt with secret_env and callers; or listen on 127.0.0.1; or set open: true",
		"%s: anyone who reaches it could call %s with weir's credentials", doc.Quote(f.Listen), strings.Join(bare, ", "))
}

// checkTokens reports tokens for unknown upstreams. A token for such an upstream alone permits nothing.
func (d *decoder) checkTokens(tokens *node, f *document) {
	known := f.names()
	for _, e := range tokens.All() {
		for _, at := range texts(e.Value.Get("upstreams")) {
			if !slices.Contains(known, at.Text) {
				d.Unknown(at, "upstream", at.Text, known)
			}
		}
	}
}

// checkJWT reports scopes for unknown upstreams. Such scopes would protect nothing.
func (d *decoder) checkJWT(scopes *node, f *document) {
	for _, e := range scopes.All() {
		if known := f.names(); !slices.Contains(known, e.Name) {
			d.Unknown(e.Value, "upstream", e.Name, known)
		}
	}
}

// names returns the names of the upstreams.
func (f *document) names() (all []string) {
	for i := range f.Upstreams {
		all = append(all, f.Upstreams[i].Name)
	}
	return all
}

// texts returns the items of a list. It returns n itself if n is a scalar.
func texts(n *node) []*node {
	switch {
	case n == nil:
		return nil
	case n.Kind == doc.Scalar:
		return []*node{n}
	}
	return n.Items
}

// addsCredentials reports whether weir adds its credentials to requests for an upstream, or for another upstream that
// can answer instead.
func (f *document) addsCredentials(upstream string) bool {
	own := func(name string) bool {
		_, signed := f.AWS[name]
		return signed || f.LLM[name].KeyEnv != "" || f.Sends[name] != nil
	}
	if own(upstream) {
		return true
	}
	c := f.LLM[upstream].Cascade
	return c != nil && slices.ContainsFunc(c.Tiers, func(t Tier) bool { return t.Upstream != "" && own(t.Upstream) })
}

// identifies reports whether an upstream refuses callers without a verifiable token.
func (f *document) identifies(upstream string) bool {
	l, ok := f.LLM[upstream]
	c := f.Callers
	return (ok && l.Callers || f.Counted[upstream]) && c != nil && c.Claims != nil && !c.Claims.Optional && c.claimed()
}

// claimed reports whether a key is a claim. Without such a key, tokens are not read.
func (c *Callers) claimed() bool {
	for _, s := range c.Keys {
		if s.Kind == Claim {
			return true
		}
	}
	return false
}

// checkCAs reports client certificate settings without TLS: clients could not send certificates.
func (d *decoder) checkCAs(root *node, f *document) {
	for _, c := range []struct{ field, file string }{{"client_ca", f.Callable.ClientCA}, {"admin_client_ca", f.AdminAccess.ClientCA}} {
		if c.file != "" && f.TLS == nil {
			d.Bad(root.Get(c.field), "add tls: {cert: ..., key: ...}", "client certificates need tls")
		}
	}
	if f.AdminTLS && f.TLS == nil {
		d.Bad(root.Get("admin_tls"), "add tls: {cert: ..., key: ...}", "no server certificate is configured")
	}
	if f.Decide != nil && f.Decide.ClientCA != "" && f.TLS == nil {
		d.Bad(root.Get("decide").Get("client_ca"), "add tls: {cert: ..., key: ...}", "client certificates need tls")
	}
}

// loopback reports whether an address is reachable from this machine only.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && auth.Loopback(host)
}
