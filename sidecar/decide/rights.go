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

// Rights limit what a caller may report and hold, so that one caller cannot use up everything. The zero Rights are
// for a caller with a token or a certificate: its reports affect only its own calls. Anonymous callers have no
// Rights.
type Rights struct {
	// Everyone makes the caller's reports affect all callers. Its hints pause the limits that a call was charged to,
	// its failures open the upstream's breaker, and its throttles slow adaptive rates. Without Everyone, reports
	// affect only the caller itself.
	Everyone bool

	// Keys are the values that the caller may name for a scope. A single value is the default. Scopes without an
	// entry may have any value.
	Keys map[string][]string

	MaxPermits int // unended permits and waiting acquires; 0 means 8,192
	MaxWaiting int // acquires in progress; 0 means 1,024
	MaxKeys    int // distinct values of scopes in ten minutes; 0 means 10,000
	MaxPauses  int // pauses of the caller's own calls; 0 means 1,000
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

// rights returns the rights of a caller. It returns nil for anonymous callers, whose reports affect all callers and
// who share the common limits.
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

// believed reports whether the caller's reports affect all callers.
func (r *Rights) believed() bool { return r == nil || r.Everyone }

// fit checks the keys of a call against the caller's rights, and adds defaults.
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

// fitLook is like fit for a caller that only reads limits: it need not choose among several values of a scope.
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
