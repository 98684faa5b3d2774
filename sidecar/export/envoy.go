package export

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// EnvoyOptions say how an Envoy asks. The zero options ask for all upstreams in the domain "weir", at the address
// where the configuration answers.
type EnvoyOptions struct {
	Domain    string   // "" means weir
	Address   string   // host:port of weir's rate limit service; "" means decide.grpc
	Upstreams []string // none means all
	Plain     bool     // the rules are for the server of envoyproxy/ratelimit
}

// Keys of descriptors: the first entry names the upstream, the second the limit, and one more the key by which it
// counts. A request without that key has a descriptor of two entries, as its action says skip_if_absent: such
// requests share one counter, as they do in weir.
const (
	upstreamKey = "upstream"
	limitKey    = "limit"
	remoteKey   = "remote_address" // the one that Envoy gives
)

// EnvoyRules are the limits as a file for decide.rules, which the server of envoyproxy/ratelimit reads, too, if it
// is plain.
func EnvoyRules(f *config.File, o EnvoyOptions) (File, error) {
	l := &ledger{target: "a rate limit service", file: f}
	if o.Plain {
		l.target = "envoyproxy/ratelimit"
	}
	all, err := l.chosen(o.Upstreams)
	if err != nil {
		return File{}, err
	}
	type rules struct {
		Domain      string       `yaml:"domain"`
		Descriptors []descriptor `yaml:"descriptors"`
	}
	r := rules{Domain: cmp.Or(o.Domain, "weir")}
	for _, u := range all {
		l.bounds(u)
		d := descriptor{Key: upstreamKey, Value: u.Name}
		for i := range u.Policy.Limits {
			d.Descriptors = append(d.Descriptors, l.descriptor(u, &u.Policy.Limits[i], o.Plain))
		}
		if len(d.Descriptors) > 0 {
			r.Descriptors = append(r.Descriptors, d)
		}
	}
	if len(r.Descriptors) == 0 && len(l.errs) == 0 {
		return File{}, fmt.Errorf("%s has no limits to write", named(o.Upstreams))
	}
	return l.written("Rules for Envoy's rate limit service. Made by weir export envoy-rules; what Envoy sends for them, weir export envoy writes.", r)
}

// named is which upstreams a message is about.
func named(upstreams []string) string {
	if len(upstreams) == 0 {
		return "the file"
	}
	return strings.Join(upstreams, ", ")
}

// written is the file, or what is wrong.
func (l *ledger) written(about string, content any) (File, error) {
	if err := l.err(); err != nil {
		return File{}, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n", about)
	for _, w := range l.warnings {
		fmt.Fprintf(&b, "# %s\n", w)
	}
	text, err := doc.Write(content)
	if err != nil {
		return File{}, err
	}
	b.Write(text)
	return File{b.Bytes(), l.warnings}, nil
}

// A descriptor is one of the rules.
type descriptor struct {
	Key         string       `yaml:"key"`
	Value       string       `yaml:"value,omitempty"`
	Limit       *quota       `yaml:"rate_limit,omitempty"`
	Descriptors []descriptor `yaml:"descriptors,omitempty"`
}

func (l *ledger) descriptor(u *config.Upstream, one *limit.Limit, plain bool) descriptor {
	d := descriptor{Key: limitKey, Value: one.Name}
	if strings.HasSuffix(d.Value, "*") {
		l.bad(u, "limits."+one.Name, "names that end in *", "")
	}
	q, good := l.window(u, one, plain)
	if good {
		d.Limit = &q
	}
	if one.Scope != "" {
		if key, _, ok := l.key(u, one); ok && good {
			d.Descriptors = []descriptor{{Key: key, Limit: &q}}
		}
	}
	return d
}

// key is the key of the descriptor entry by which a limit counts, and the action that makes it.
func (l *ledger) key(u *config.Upstream, one *limit.Limit) (key string, a action, ok bool) {
	source := u.Keys[one.Scope]
	switch source.Kind {
	case httpx.FromHeader:
		name := strings.ToLower(source.Name)
		if name == "host" {
			name = ":authority"
		}
		return one.Scope, action{Header: &headerValue{name, one.Scope, true}}, true
	case httpx.FromQuery:
		return one.Scope, action{Query: &queryValue{source.Name, one.Scope, true}}, true
	case httpx.FromRemote:
		return remoteKey, action{Remote: &struct{}{}}, true
	}
	l.bad(u, "limits."+one.Name, fmt.Sprintf("key for the scope %q", one.Scope), "have it from a header, a parameter of the query or the caller's address")
	return "", action{}, false
}
