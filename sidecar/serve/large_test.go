package serve

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/delivery"
)

// A body above what stands in a record is delivered, whether it says how large it is or not; one above max_body is not taken, and
// nothing of it stays.
func TestALargeBodyIsDelivered(t *testing.T) {
	m := newMailboxIn(t, "{file: deliveries.db, max_body: 2MiB}", "true", "", "")
	dir := filepath.Join(filepath.Dir(m.file), "deliveries.db.bodies")
	body := strings.Repeat("0123456789abcdef", 1<<16)
	small := body[:delivery.MaxBody]
	post := func(body io.Reader) (int, string) {
		r, err := http.NewRequest("POST", "http://"+m.run.Addr()+"/box/x", body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Prefer", "respond-async, wait=60")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(text)
	}
	for i, from := range []io.Reader{strings.NewReader(body), io.MultiReader(strings.NewReader(body)), strings.NewReader(small), io.MultiReader(strings.NewReader(small))} {
		status, text := post(from)
		m.mu.Lock()
		if want := []string{body, body, small, small}[i]; status != 200 || len(m.bodies) != i+1 || m.bodies[i] != want {
			t.Errorf("%d: %d %s, %d delivered", i, status, text, len(m.bodies))
		}
		m.mu.Unlock()
		if all, err := os.ReadDir(dir); err != nil || len(all) != min(i+1, 2) {
			t.Errorf("%d: %d files, %v", i, len(all), err)
		}
	}
	for _, from := range []io.Reader{strings.NewReader(body + body + "x"), io.MultiReader(strings.NewReader(body), strings.NewReader(body+"x"))} {
		if status, text := post(from); status != 413 || !strings.Contains(text, "2097152 bytes") {
			t.Errorf("too large: %d %s", status, text)
		}
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 2 {
		t.Errorf("in the end %d files, %v", len(all), err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v, %v", info.Mode(), err)
	}
}
