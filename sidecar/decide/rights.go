package decide

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/seed1158cd35/weir/internal/refuse"
)

// Rights are what a caller may say, and how much it may hold, so that it cannot take
// everything from the others. The zero Rights are those of a caller whom a token or a
// certificate names: its word counts for its own calls. They do not bind callers whom
// nothing tells apart.
type Rights struct {
	// Everyone makes what the caller reports count for everyone: its hints pause the
	// limits that a call was charged to, its failures open the upstream's breaker, its
	// throttles slow rates that learn. Without it they hold back the caller itself alone.
	Everyone bool

	// Keys are the values that it may name for a scope. One that stands alone is meant if
	// a call names none. A scope that is not there may have any value.
	Keys map[string][]string

	MaxPermits int // out and waited for at once; 0 means 8,192
	MaxWaiting int // acquires under way at once; 0 means 1,024
	MaxKeys    int // different values of scopes in ten minutes; 0 means 10,000
	MaxPauses  int // pauses of its own at once; 0 means 1,000
}

const (
	defaultOwnPermits = 8 << 10
	defaultWaiting    = 1 << 10
	defaultOwnKeys    = 10_000
	defaultPauses     = 1_000
)

func (r Rights) withDefaults() Rights {
	r.MaxPermits = cmp.Or(r.MaxPermits, defaultOwnPermits)
	r.MaxWaiting = cmp.Or(r.MaxWaiting, defaultWaiting)
	r.MaxKeys = cmp.Or(r.MaxKeys, defaultOwnKeys)
	r.MaxPauses = cmp.Or(r.MaxPauses, defaultPauses)
	return r
}

// rights are those of a caller, nil for one whom nothing tells apart: what it says is
// believed, and what all may hold bounds it.
func (s *Server) rights(caller string) *Rights {
	if caller == "" {
		return nil
	}
	var r Rights
	if s.Rights != nil {
		r = s.Rights(caller)
	}
	return new(r.withDefaults())
}

// believed reports whether what a caller reports counts for everyone.
func (r *Rights) believed() bool { return r == nil || r.Everyone }

// fit holds the keys of a call to what the caller may name, and fills in what it need not.
func (r *Rights) fit(keys map[string]string) (map[string]string, *refuse.Facts) {
	if r == nil || len(r.Keys) == 0 {
		return keys, nil
	}
	for _, scope := range slices.Sorted(maps.Keys(r.Keys)) {
		may := r.Keys[scope]
		value, said := keys[scope]
		switch {
		case said && !slices.Contains(may, value):
			return nil, failed(http.StatusForbidden, refuse.Forbidden, "keys.%s: this caller may not use %s; it may use %s", shorten(scope), quoted(value), listed(may))
		case !said && len(may) == 1:
			keys = maps.Clone(keys)
			if keys == nil {
				keys = make(map[string]string, 1)
			}
			keys[scope] = may[0]
		case !said:
			return nil, failed(http.StatusForbidden, refuse.Forbidden, "keys.%s: is missing; this caller may use %s", shorten(scope), listed(may))
		}
	}
	return keys, nil
}

// fitLook is fit for a caller that looks and calls nothing: a scope of which it may name several values it need not name.
func (r *Rights) fitLook(keys map[string]string) (map[string]string, *refuse.Facts) {
	if r == nil {
		return keys, nil
	}
	may := maps.Clone(r.Keys)
	maps.DeleteFunc(may, func(scope string, values []string) bool {
		_, said := keys[scope]
		return !said && len(values) != 1
	})
	return (&Rights{Keys: may}).fit(keys)
}

func listed(values []string) string {
	shown := make([]string, 0, len(values))
	for i, v := range values {
		if i == 10 {
			return fmt.Sprintf("%s and %d more", strings.Join(shown, ", "), len(values)-i)
		}
		shown = append(shown, quoted(v))
	}
	return strings.Join(shown, ", ")
}
