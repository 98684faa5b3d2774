package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	room "github.com/seed1158cd35/weir/internal/buffers"
)

// While the memory for bodies is full, the configuration decides whether a body is sent once or refused.
func TestWhatIsFullIsAsConfigured(t *testing.T) {
	const size = 3 << 20
	full := room.Bodies.Total()/2 - room.Small
	if !room.Bodies.Take(full) {
		t.Fatal("the budget is in use")
	}
	defer room.Bodies.Give(full)
	for _, tt := range []struct {
		name      string
		full      Full
		announced int64 // 0 for a body of unknown length
		status    int
		sent      int
	}{
		{"by default it passes", FullDefault, size, 503, 1},
		{"it passes", FullPass, size, 503, 1},
		{"it is refused", FullRefuse, size, 503, 0},
		{"it is refused, and did not say its length", FullRefuse, 0, 503, 0},
		{"it could never be held", FullRefuse, room.Bodies.Total(), 413, 0},
	} {
		a := &answerer{answers: []answer{{503, "", "down"}}}
		s := httptest.NewServer(a)
		u := up(s.URL, brisk())
		u.Replay, u.Full = 1<<30, tt.full
		address := listen(t, newProxy(t, u))
		r, _ := http.NewRequest("PUT", "http://"+address+"/", io.MultiReader(strings.NewReader(strings.Repeat("x", size))))
		if r.ContentLength = -1; tt.announced > 0 {
			r.ContentLength = tt.announced
		}
		client := &http.Client{Transport: &http.Transport{}, Timeout: patience}
		resp, err := client.Do(r)
		if err != nil {
			if tt.announced != size { // the response came while the body was sent
				s.Close()
				continue
			}
			t.Fatalf("%s: %v", tt.name, err)
		}
		_ = text(t, resp)
		client.CloseIdleConnections()
		s.Close()
		whole := 0
		for _, b := range a.bodies {
			if len(b) == size {
				whole++
			}
		}
		if resp.StatusCode != tt.status || whole != tt.sent {
			t.Errorf("%s: %s, the upstream has had %d bodies", tt.name, resp.Status, whole)
		}
		if again := resp.Header.Get("Retry-After"); tt.sent == 0 && (again != "") != (tt.status == 503) {
			t.Errorf("%s: Retry-After %q", tt.name, again)
		}
	}
}
