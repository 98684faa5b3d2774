package decide

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/internal/scopes"
	"github.com/seed1158cd35/weir/limit"
)

// units are valid for every upstream, even if its limits do not count them.
var units = []string{limit.Requests, "bytes", "tokens", "input_tokens", "output_tokens"}

// Scopes are scopes of an upstream that its policy does not contain.
type Scopes struct {
	Declared []string // scopes whose values the configuration determines
	Caller   []string // scopes whose value is the caller's name, which the caller must not send
	Model    bool     // the upstream is a language model; see flow
}

// The scopes of a language model that determine fairness.
const (
	waiter = "caller"
	user   = "user"
	apiKey = "credential"
)

// flow adds the key by which calls of a language model queue fairly, as in the sidecar: the user, else the caller,
// else the API key.
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

// veil replaces keys by the form in which they are counted, stored and shown.
func (s *Server) veil(keys map[string]string) map[string]string {
	for scope, value := range keys {
		keys[scope] = s.Veil.Key(scope, value)
	}
	return keys
}

// name adds the caller's name.
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

// check reports units and keys that no limit counts. They are most likely misspelled, and the call would proceed
// without being counted.
func (q *acquireRequest) check(p *weir.Policy, known Scopes, caller string) *refuse.Facts {
	names := make([]string, 0, len(known.Declared)+3*len(p.Limits)+len(known.Caller)+3)
	names = append(names, known.Declared...)
	for _, l := range p.Limits {
		names = append(scopes.Append(names, l.Scope), l.If.Scope)
	}
	names = append(append(names, p.BreakerScope, p.Fair.By), known.Caller...)
	if known.Model {
		names = append(names, user)
	}
	wrong := mistakes{path: q.path}
	own := known.Caller
	if known.Model && caller != "" { // it queues under its own name only
		own = append(slices.Clone(own), waiter)
	}
	for _, scope := range own {
		if value, said := q.Keys[scope]; said {
			wrong.add("keys."+scope, value, "is the caller's name, which weir takes from its token or certificate: leave it out")
		}
	}
	misspelt(&wrong, "keys", q.Keys, names, "scope")
	misspelt(&wrong, "cost", q.Cost, unitsOf(p), "unit")
	return wrong.failure()
}

// unitsOf returns the units that calls under a policy can have.
func unitsOf(p *weir.Policy) []string {
	all := append(make([]string, 0, len(units)+len(p.Limits)), units...)
	for _, l := range p.Limits {
		all = append(all, l.UnitName())
	}
	return all
}

// checkUnits reports units of a report that no limit counts, as check does for an acquire.
func (q *reportRequest) checkUnits(p *weir.Policy) *refuse.Facts {
	var wrong mistakes
	misspelt(&wrong, "usage", q.Usage, unitsOf(p), "unit")
	return wrong.failure()
}

// misspelt reports unknown names in a field.
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
			hint = "the upstream has no limits with a " + what
		default:
			hint = "known are " + strings.Join(known, ", ")
		}
		wrong.add(field+"."+name, missing{}, "no limit uses this %s; %s", what, hint)
	}
}
