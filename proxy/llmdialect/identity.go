package llmdialect

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/seed1158cd35/weir/proxy"
)

// identify finds out who calls.
func (x *exchange) identify(r *http.Request) *proxy.Failure {
	x.keys = make(map[string]string, 8)
	if b := billOf(r.Context()); b != nil { // it is sent in the place of another, and its caller is known
		for scope, value := range b.of.keys {
			x.keys[scope] = value
		}
		x.whose = b.of.whose
	} else if c := x.d.o.Callers; c != nil {
		if err := c.identify(r, x.keys); err != nil {
			return &proxy.Failure{Status: http.StatusUnauthorized, Code: proxy.ValidationError, Message: err.Error(), Final: true}
		}
	}
	for scope, read := range x.d.scopes {
		if _, ok := x.keys[scope]; !ok {
			x.keys[scope] = read(r)
		}
	}
	if x.whose == "" {
		x.whose = x.keys[Tenant]
	}
	if x.whose == "" && x.d.o.Key != "" { // those who share weir's key may still be different people
		x.whose = x.keys[User] + "\n" + fingerprint(x.d.presented(r))
	}
	x.keys[Route], x.keys[Credential] = x.d.o.Name, fingerprint(x.d.credential(r))
	return nil
}

// name fills in what is known once the body has been read.
func (x *exchange) name() {
	model := x.route.Model
	if x.request != nil {
		model = x.request.Model
	}
	x.keys[Model] = model
	x.keys[Pool] = x.keys[Credential] + "/" + model
}

// fingerprint tells a credential from others without showing it.
func fingerprint(secret string) string {
	if secret == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(secret))
	return "sha256:" + hex.EncodeToString(sum[:8])
}

// versions are the headers that say in which version of its words a provider answers, and
// for whom.
var versions = []string{
	"Anthropic-Version", "Anthropic-Beta", "Openai-Beta", "Openai-Organization", "Openai-Project",
	"X-Amzn-Bedrock-Guardrailidentifier", "X-Amzn-Bedrock-Guardrailversion", "X-Amzn-Bedrock-Trace",
	"X-Amzn-Bedrock-Performanceconfig-Latency", "X-Amzn-Bedrock-Service-Tier",
}

// version is what besides the body changes an answer: where the model is asked, the
// parameters of the query, and versions.
func version(r *http.Request, path string) string {
	v := path[:strings.LastIndexByte(path, '/')+1] + "?" + without(r.URL.RawQuery, func(name, value string) bool {
		return name == "key" || name == "access_token" || name == "alt" && (value == "sse" || value == "json")
	})
	for _, name := range versions {
		if said := r.Header[name]; len(said) > 0 {
			v += "\n" + name + ": " + strings.Join(said, ",")
		}
	}
	return v
}
