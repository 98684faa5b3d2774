package serve

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/internal/test/servers"
)

// cloudTown runs weirs that share deliveries in a table and a queue. args are the arguments of the table's emulator.
func cloudTown(t *testing.T, args ...string) *town {
	withKeys(t)
	o := &town{T: t, db: servers.Dynalite(t, args...), queue: servers.Fauxqs(t), file: filepath.Join(t.TempDir(), "weir.yaml"), got: make(map[string]int)}
	up := httptest.NewServer(o)
	t.Cleanup(up.Close)
	text := fmt.Sprintf(`listen: 127.0.0.1:0
admin: 127.0.0.1:0
deliveries: {aws: {table: weir, queue: '%s/000000000000/weir', region: us-east-1, endpoint: '%s'}}
upstreams:
  box:
    url: %s
    deliver_schedule: messaging
    routes: [{path: /box/, strip: true, deliver: true}]
`, o.queue.Endpoint(), o.db.Endpoint(), up.URL)
	put(t, o.file, text)
	return o
}

// A fleet delivers from a table and a queue that weir store init creates. Without them, it serves direct calls.
func TestDeliveriesInAWS(t *testing.T) {
	o := cloudTown(t)
	text, err := os.ReadFile(o.file)
	if err != nil {
		t.Fatal(err)
	}
	put(t, o.file, strings.ReplaceAll(string(text), o.db.Endpoint(), tablesWithTTL(t, o.db.Endpoint()).url))
	o.lacks("weir store init")
	if said := o.init(); !strings.Contains(said, "were created") {
		t.Error(said)
	}
	if said := o.init(); !strings.Contains(said, "nothing had to be changed") {
		t.Error(said)
	}
	for _, try := range tryDeliveries(o.load(), Options{Env: os.LookupEnv}) {
		if said, err := try.try(t.Context()); err != nil {
			t.Errorf("%s: %s, %v", try.name, said, err)
		}
	}
	one, two := o.weir(), o.weir()
	for i, to := range []*Running{one, two, one} {
		if r, body := o.send(to, fmt.Sprint("body ", i), "respond-async, wait=10"); r.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", r.Status, body)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.got) != 3 {
		t.Errorf("delivered %v", o.got)
	}
	for body, n := range o.got {
		if n != 1 {
			t.Errorf("%s was delivered %d times", body, n)
		}
	}
}
