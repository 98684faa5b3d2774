package decide

import (
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/veil"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// Keys never contain values of scopes with credentials. They contain other values, unless a secret hashes them.
func TestSecretsAreNoKeys(t *testing.T) {
	for _, c := range []struct {
		veil  *veil.Veil
		shown string // for the user
	}{{nil, "ann"}, {veil.New("a-secret-of-the-fleet", nil), "hmac:"}} {
		p := policy()
		p.Limits = nil
		for _, scope := range []string{"session", "user"} {
			p.Limits = append(p.Limits, limit.Limit{Name: scope, Scope: scope, Rate: bucket.Rate{Amount: 1, Per: time.Hour, Burst: 9}})
		}
		u := upstream(t, "api", p)
		s := server(t, u)
		s.Veil = c.veil
		if a := acquire(t, s.Handler(), `{"upstream":"api","keys":{"session":"canary","user":"ann"}}`); a.Code != 200 || strings.Contains(a.Body.String(), "canary") {
			t.Errorf("got %d %s", a.Code, a.Body)
		}
		for _, l := range u.Look(9).Limits {
			if l.Key == "canary" || l.Key != "" && l.Limit.Name == "user" && !strings.HasPrefix(l.Key, c.shown) {
				t.Errorf("the key of %s is %s", l.Limit.Name, l.Key)
			}
		}
	}
}
