package config

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/internal/doc"
)

// A Callback is the endpoint that is notified when deliveries end.
type Callback struct {
	Upstream string
	Path     string   // may contain a query
	Secrets  []string // environment variables with the secrets
	Failed   bool     // also notify about dead letters
}

var callbackFields = []field[Callback]{
	one("upstream", word, func(c *Callback) *string { return &c.Upstream }, "required", "Upstream that receives the POST, under its policy."),
	one("path", text("a path that begins with /, and perhaps a query", callbackPath), func(c *Callback) *string { return &c.Path }, "`/`", ""),
	one("secrets_env", variablesOf, func(c *Callback) *[]string { return &c.Secrets }, "required",
		"Environment variables with signing secrets (`whsec_` and 24 to 64 random bytes in base64), as in Standard Webhooks. Callbacks are signed with each secret."),
	one("failed", boolean, func(c *Callback) *bool { return &c.Failed }, "true", ""),
}

func callbackPath(s string) (string, string, string) {
	u, err := url.ParseRequestURI(s)
	if err != nil || !strings.HasPrefix(s, "/") || u.Host != "" {
		return "", "is not a path of an upstream", "write path: /hooks/weir, and the host as an upstream"
	}
	return s, "", ""
}

func readCallbacks(d *decoder, n *node, v *Deliveries) {
	v.Callbacks = make(map[string]Callback, len(n.Fields))
	for _, e := range d.named(n) {
		c := Callback{Path: "/", Failed: true}
		if object(d, e.Value, callbackFields, &c); e.Value.Kind != doc.Mapping {
			continue
		}
		if e.Value.Get("secrets_env") == nil {
			d.Bad(e.Value, "write secrets_env: CALLBACK_SECRET", "has no secret to sign with")
		}
		v.Callbacks[e.Name] = c
	}
}

// checkCallbacks reports callbacks to unknown upstreams, and references to unknown callbacks.
func (d *decoder) checkCallbacks(root *node, f *document) {
	known := make(map[string]bool, len(f.Upstreams))
	var all map[string]Callback
	if f.Deliveries != nil {
		all = f.Deliveries.Callbacks
	}
	for i := range f.Upstreams {
		u := &f.Upstreams[i]
		known[u.Name] = true
		if _, ok := all[u.Callback]; u.Callback != "" && !ok {
			d.Bad(root.Get("upstreams").Get(u.Name).Get("deliver_callback"), "write deliveries: {callbacks: {"+u.Callback+": {upstream: NAME, path: /hooks/weir, secrets_env: CALLBACK_SECRET}}}",
				"unknown callback %s", doc.Quote(u.Callback))
		}
	}
	for _, e := range root.Get("deliveries").Get("callbacks").All() {
		c, ok := all[e.Name]
		at := e.Value.Get("upstream")
		switch {
		case !ok:
		case c.Upstream == "":
			d.Bad(e.Value, "write upstream: NAME", "has no upstream")
		case !known[c.Upstream]:
			d.Bad(at, "add upstreams: {NAME: {url: https://HOST}} for the host to call, and name it here", "unknown upstream %s", doc.Quote(c.Upstream))
		case f.isLLM(c.Upstream):
			d.Bad(at, "", "an upstream with llm cannot receive callbacks")
		case f.unsigned(c.Upstream):
			d.Bad(at, "write aws: {service: sqs, region: eu-west-1} there", "has no service and region to sign requests for")
		}
	}
}

// CallbacksOf returns the callbacks with their secrets. The error contains no secret.
func (v *Deliveries) CallbacksOf(env func(string) (string, bool)) (map[string]delivery.Callback, error) {
	all := make(map[string]delivery.Callback, len(v.Callbacks))
	for name, c := range v.Callbacks {
		is := delivery.Callback{Upstream: c.Upstream, Path: c.Path, Failed: c.Failed}
		for _, variable := range c.Secrets {
			text, _ := env(variable)
			secret, err := delivery.ParseSecret(text)
			if err != nil {
				return nil, fmt.Errorf("deliveries: callbacks: %s: environment variable %s: %w", name, variable, err)
			}
			is.Secrets = append(is.Secrets, secret)
		}
		all[name] = is
	}
	return all, nil
}
