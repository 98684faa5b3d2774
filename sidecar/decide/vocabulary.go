package decide

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/limit"
)

// units that every upstream knows, whether its limits count them or not.
var units = []string{limit.Requests, "bytes", "tokens", "input_tokens", "output_tokens"}

// Scopes are scopes of an upstream that its policy does not tell of.
type Scopes struct {
	Declared []string // that the configuration knows values for
	Caller   []string // whose value is the caller's name, which it need not and cannot say
	Model    bool     // the upstream is a language model: see flow
}

// The scopes of a language model by which its callers wait in turn.
const (
	waiter = "caller"
	user   = "user"
	apiKey = "credential"
)

// flow fills in who waits in turn with the others of a language model, as for calls through
// the sidecar: the user, else whoever asks, else the API key, as far as that is said.
func (s Scopes) flow(keys map[string]string, caller string) map[string]string {
	if !s.Model || keys[waiter] != "" {
		return keys
	}
	all := maps.Clone(keys)
	if all == nil {
		all = make(map[string]string, 1)
	}
	all[waiter] = cmp.Or(keys[user], caller, keys[apiKey])
	return all
}

// veil makes keys what they are counted, kept and shown as.
func (s *Server) veil(keys map[string]string) map[string]string {
	for scope, value := range keys {
		keys[scope] = s.Veil.Key(scope, value)
	}
	return keys
}

// name fills in the caller's name.
func (s Scopes) name(keys map[string]string, caller string) map[string]string {
	if len(s.Caller) == 0 {
		return keys
	}
	all := maps.Clone(keys)
	if all == nil {
		all = make(map[string]string, len(s.Caller))
	}
	for _, scope := range s.Caller {
		all[scope] = caller
	}
	return all
}

// check finds units and keys that nothing counts by. They are most likely misspelt, and a
// call would pass that nobody counts.
func (q *acquireRequest) check(p *weir.Policy, known Scopes, caller string) *refuse.Facts {
	scopes := make([]string, 0, len(known.Declared)+2*len(p.Limits)+len(known.Caller)+3)
	scopes = append(scopes, known.Declared...)
	for _, l := range p.Limits {
		scopes = append(scopes, l.Scope, l.If.Scope)
	}
	scopes = append(append(scopes, p.BreakerScope, p.Fair.By), known.Caller...)
	if known.Model {
		scopes = append(scopes, user)
	}
	wrong := mistakes{path: q.path}
	own := known.Caller
	if known.Model && caller != "" { // it waits in its own turn, and in nobody else's
		own = append(slices.Clone(own), waiter)
	}
	for _, scope := range own {
		if value, said := q.Keys[scope]; said {
			wrong.add("keys."+scope, value, "is the caller's name, which weir takes from its token or certificate: leave it out")
		}
	}
	misspelt(&wrong, "keys", q.Keys, scopes, "scope")
	misspelt(&wrong, "cost", q.Cost, unitsOf(p), "unit")
	return wrong.failure()
}

// unitsOf are the units that calls under a policy can be counted in.
func unitsOf(p *weir.Policy) []string {
	all := append(make([]string, 0, len(units)+len(p.Limits)), units...)
	for _, l := range p.Limits {
		all = append(all, l.UnitName())
	}
	return all
}

// checkUnits finds units of a report that nothing counts by, as those of an acquire.
func (q *reportRequest) checkUnits(p *weir.Policy) *refuse.Facts {
	var wrong mistakes
	misspelt(&wrong, "usage", q.Usage, unitsOf(p), "unit")
	return wrong.failure()
}

// misspelt notes the names of a field that are none of those known.
func misspelt[V any](wrong *mistakes, field string, values map[string]V, known []string, what string) {
	var names []string
	for name := range values {
		if name == "" || !slices.Contains(known, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return
	}
	known = slices.DeleteFunc(known, func(s string) bool { return s == "" })
	slices.Sort(known)
	known = slices.Compact(known)
	slices.Sort(names)
	for _, name := range names {
		hint := doc.Suggest(name, known)
		switch {
		case hint != "":
		case len(known) == 0:
			hint = "the upstream has none"
		default:
			hint = "there are " + strings.Join(known, ", ")
		}
		wrong.add(field+"."+name, missing{}, "no limit uses this %s; %s", what, hint)
	}
}
