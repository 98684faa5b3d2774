package serve

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/servers"
)

// The store limit of a fleet applies to all its processes together. A named caller may use half of it.
func TestFleetThatStoresItsMostAnswers429And507(t *testing.T) {
	for name, begin := range map[string]func(*testing.T) *town{
		"postgres": newTown,
		"aws":      func(t *testing.T) *town { return cloudTown(t) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, caller := range []string{"a", "b", "c"} {
				t.Setenv("TOKEN_"+caller, strings.Repeat(caller, 32))
			}
			o := begin(t)
			text, err := os.ReadFile(o.file)
			if err != nil {
				t.Fatal(err)
			}
			put(t, o.file, strings.Replace(string(text), "deliveries: {", "tokens: {a: {env: TOKEN_a}, b: {env: TOKEN_b}, c: {env: TOKEN_c}}\ndeliveries: {max_stored: 4, ", 1))
			o.init()
			weirs := [...]*Running{o.weir(), o.weir()}
			later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
			for i, c := range []struct {
				caller string
				want   int
			}{{"a", 202}, {"a", 202}, {"a", 429}, {"a", 429}, {"b", 202}, {"b", 202}, {"c", 507}, {"c", 507}} {
				r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+weirs[i%2].Addr()+"/box/in", nil)
				if err != nil {
					t.Fatal(err)
				}
				for name, value := range map[string]string{"X-Weir-Token": os.Getenv("TOKEN_" + c.caller), "Prefer": "respond-async", "Weir-Not-Before": later, "Idempotency-Key": fmt.Sprint(i)} {
					r.Header.Set(name, value)
				}
				got := http.StatusServiceUnavailable
				for try := 0; try < 10 && got == http.StatusServiceUnavailable; try++ { // a busy machine was late: retry with the same key
					resp, err := http.DefaultClient.Do(r)
					if err != nil {
						t.Fatal(err)
					}
					resp.Body.Close()
					got = resp.StatusCode
				}
				if got != c.want {
					t.Errorf("request %d, of caller %s, gets %d, want %d", i, c.caller, got, c.want)
				}
			}
		})
	}
}

// If the deliveries' database is unreachable, weir serves direct calls and reports the problem until it is reachable.
func TestWeirStartsWithoutItsDatabase(t *testing.T) {
	db := servers.Postgres(t)
	way := newMute(t, db.Addr())
	o := townAt(t, db, strings.Replace(db.PostgresURL(), db.Addr(), way.listener.Addr().String(), 1))
	o.init()
	way.set(true)
	w := o.weir()
	if resp, _ := o.send(w, "direct", ""); resp.StatusCode != http.StatusOK {
		t.Errorf("a direct call gets %d", resp.StatusCode)
	}
	if resp, _ := o.send(w, "later", "respond-async"); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a request to be delivered gets %d, want 503", resp.StatusCode)
	}
	ready := func() string {
		resp, err := http.Get("http://" + w.AdminAddr() + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return fmt.Sprint(resp.StatusCode, " ", string(text))
	}
	if got := ready(); got != "200 ready\nproblem with deliveries: they are unavailable\n" {
		t.Errorf("/readyz answers %q", got)
	}
	way.set(false)
	way.cut()
	for ready() != "200 ready\n" {
		time.Sleep(100 * time.Millisecond)
	}
	if resp, body := o.hands(w, "later", "respond-async"); resp.StatusCode != http.StatusAccepted {
		t.Errorf("when the database is there: %d %s", resp.StatusCode, body)
	}
}
