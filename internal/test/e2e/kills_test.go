//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/internal/test/campaign"
	"github.com/seed1158cd35/weir/internal/test/served"
	"github.com/seed1158cd35/weir/internal/test/servers"
	"github.com/seed1158cd35/weir/internal/test/watchdog"
)

// The upstream's limit per second. Callers submit slightly more.
const (
	sends      = 150
	sendsOfAWS = 20 // emulators of DynamoDB and SQS handle some hundred requests a second
)

// A process is killed every second under load. No accepted delivery is lost, none is sent after its success was recorded, and
// no limit is exceeded. Only deliveries of a killed process are sent again.
func TestDeliveriesOutliveKillsOnSQLite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	k := newKills(t, sends, "file: "+filepath.Join(dir, "store"), "file: "+filepath.Join(dir, "deliveries.db"))
	k.run(1)
	k.drained()
}

// Four processes share a database and a store for the limit. The store reserves the part of a killed process for the shortest
// possible time. With five minutes, hundreds of killed processes would hold the complete limit.
func TestDeliveriesOutliveKillsOnPostgres(t *testing.T) {
	t.Parallel()
	db := servers.Postgres(t)
	k := newKills(t, sends, "redis: '"+servers.Redis(t).URL()+"', outage: 5s", "postgres: {url: '"+db.PostgresURL()+"'}")
	k.init()
	k.run(4)
	leasesRunOut(t, db.PostgresURL())
	k.drained()
}

// The same with DynamoDB and SQS, which use each process's clock. Deliveries of a killed process return five seconds after
// their lease.
func TestDeliveriesOutliveKillsOnDynamoDB(t *testing.T) {
	t.Parallel()
	k := newKills(t, sendsOfAWS, "redis: '"+servers.Redis(t).URL()+"', outage: 5s",
		fmt.Sprintf("aws: {table: weir, queue: '%s/000000000000/weir', region: us-east-1, endpoint: '%s'}", servers.Fauxqs(t).Endpoint(), servers.Dynalite(t).Endpoint()))
	k.init()
	k.run(4)
	k.drained()
}

// leasesRunOut moves the clock of the deliveries forward by a lease, because no process holds one.
func leasesRunOut(t *testing.T, at string) {
	c, err := pgx.Connect(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	if _, err := c.Exec(t.Context(), `CREATE OR REPLACE FUNCTION weir_now() RETURNS bigint LANGUAGE sql STABLE AS
		'SELECT floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint + 61000'`); err != nil {
		t.Fatal(err)
	}
}

// kills are processes with shared deliveries, callers that submit them, and an upstream that counts.
type kills struct {
	*testing.T
	yaml  string
	begin time.Time
	sends int // per second

	mu       sync.Mutex
	weirs    []*process
	arrived  map[string][]time.Time // by body
	order    []time.Time
	accepted map[string]string // IDs by body
	unheard  int               // responses that callers did not get
}

func newKills(t *testing.T, sends int, store, deliveries string) *kills {
	k := &kills{T: t, sends: sends, arrived: make(map[string][]time.Time), accepted: make(map[string]string), begin: time.Now()}
	up := httptest.NewServer(k)
	t.Cleanup(up.Close)
	k.yaml = fmt.Sprintf(`listen: 127.0.0.1:0
admin: 127.0.0.1:0
store: {%s}
deliveries: {%s}
upstreams:
  box:
    url: %s
    deliver_schedule: messaging
    limits: {all: {rate: %d/s, burst: %d}}
    routes: [{path: /box/, strip: true, deliver: always}]
`, store, deliveries, up.URL, sends, sends/10)
	return k
}

// emulated is the environment for emulators.
var emulated = []string{"AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=secret"}

func (k *kills) start() *process { return served.Start(k, k.yaml, emulated...) }

// init creates tables and queues.
func (k *kills) init() {
	file := filepath.Join(k.TempDir(), "weir.yaml")
	if err := os.WriteFile(file, []byte(k.yaml), 0o600); err != nil {
		k.Fatal(err)
	}
	served.Init(k, emulated, file)
}

func (k *kills) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	body, _ := io.ReadAll(r.Body)
	k.mu.Lock()
	k.arrived[string(body)] = append(k.arrived[string(body)], now)
	k.order = append(k.order, now)
	k.mu.Unlock()
	<-time.After(rand.N(30 * time.Millisecond)) // so that some are pending when a process is killed
}

// run submits requests while one of the processes is killed and restarted every second. At the end all are killed.
func (k *kills) run(weirs int) {
	for range weirs {
		k.weirs = append(k.weirs, k.start())
	}
	ctx, cancel := context.WithCancel(k.Context())
	turns := make(chan int)
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() {
			for n := range turns {
				k.handIn(fmt.Sprint("m", n))
			}
		})
	}
	callers.Go(func() {
		defer close(turns)
		tick := time.NewTicker(time.Second / time.Duration(k.sends+k.sends/10))
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-tick.C:
				turns <- n
			case <-ctx.Done():
				return
			}
		}
	})
	for range campaign.Histories(5, 50) {
		<-time.After(time.Second)
		watchdog.Moved()
		i := rand.IntN(weirs)
		k.kill(i)
		p := k.start()
		k.mu.Lock()
		k.weirs[i] = p
		k.mu.Unlock()
	}
	cancel()
	callers.Wait()
	for i := range weirs {
		k.kill(i)
	}
}

func (k *kills) kill(i int) {
	k.mu.Lock()
	p := k.weirs[i]
	k.mu.Unlock()
	if err := p.Cmd.Process.Kill(); err != nil {
		k.Error(err)
	}
	_ = p.Exited()
}

// handIn submits a request to any process until it is accepted.
func (k *kills) handIn(body string) {
	client := http.Client{Timeout: 5 * time.Second}
	for range 1000 {
		k.mu.Lock()
		at := "http://" + k.weirs[rand.IntN(len(k.weirs))].Serve.Listen
		k.mu.Unlock()
		r, err := http.NewRequest("POST", at+"/box/in", strings.NewReader(body))
		if err != nil {
			k.Error(err)
			return
		}
		r.Header.Set("Idempotency-Key", body)
		resp, err := client.Do(r)
		if err == nil {
			var receipt struct{ ID string }
			err = json.NewDecoder(resp.Body).Decode(&receipt)
			resp.Body.Close()
			if err == nil && resp.StatusCode/100 == 2 {
				k.mu.Lock()
				k.accepted[body] = receipt.ID
				k.mu.Unlock()
				return
			}
		}
		k.mu.Lock()
		k.unheard++
		k.mu.Unlock()
		<-time.After(20 * time.Millisecond)
	}
	k.Errorf("%s is never accepted", body)
}

// A seen is a delivery as weir shows it.
type seen struct {
	ID      string
	Status  delivery.Status
	Reason  delivery.Reason
	Changed time.Time
	History []struct{ N int }
}

// drained lets one process send the remaining deliveries and checks all results.
func (k *kills) drained() {
	p := k.start()
	left := time.Now()
	for k.waiting(p) || len(k.ended(p)) < len(k.accepted) { // a delivery that was being sent may wait again between two requests
		if time.Since(left) > 4*time.Minute {
			var page struct{ Deliveries []json.RawMessage }
			k.get(p, "/v1/deliveries?limit=5&oldest=true&status=queued", &page)
			k.mu.Lock()
			k.Fatalf("some wait for ever; of %d accepted %d were sent; the first: %s\n%s", len(k.accepted), len(k.order), page.Deliveries, p.Log())
		}
		watchdog.Moved() // no longer than above
		<-time.After(100 * time.Millisecond)
	}
	all := k.ended(p)
	if len(all) != len(k.accepted) {
		k.Errorf("%d deliveries of %d requests", len(all), len(k.accepted))
	}
	again, dead := 0, 0
	for body, id := range k.accepted {
		d, sent := all[id], k.arrived[body]
		switch {
		case d.Status == delivery.Failed && d.Reason == delivery.Poison: // three processes in a row were killed with it
			dead++
		case d.Status != delivery.Completed, len(sent) == 0:
			k.Errorf("%s was accepted as %s, sent %d times, and is %q", body, id, len(sent), d.Status)
		case sent[len(sent)-1].After(d.Changed.Add(time.Millisecond)):
			k.Errorf("%s was sent at %v, and its success was recorded at %v", body, sent[len(sent)-1], d.Changed)
		}
		if len(sent) > 1 {
			again++
			var one seen
			if k.get(p, "/v1/deliveries/"+id, &one); len(one.History) < len(sent) {
				k.Errorf("%s was sent %d times, and %d attempts are known", body, len(sent), len(one.History))
			}
		}
	}
	k.bounded()
	k.Logf("%d accepted, %d answers to them not heard; %d sent again, %d dead as they were in hand too often", len(k.accepted), k.unheard, again, dead)
}

// bounded checks that at any time no more deliveries have arrived than the limit allows. An arrival is never early.
func (k *kills) bounded() {
	worst := 0.0
	for i, at := range k.order {
		rate, burst := float64(k.sends), float64(k.sends/10)
		if most := burst + rate*at.Sub(k.begin).Seconds(); float64(i+1) > most {
			k.Fatalf("%d arrived within %v, want %.0f at most", i+1, at.Sub(k.begin), most)
		}
		for j := max(0, i-k.sends); j < i; j++ {
			worst = max(worst, float64(i-j+1)-burst-rate*at.Sub(k.order[j]).Seconds())
		}
	}
	k.Logf("%d arrived in %v; of one window at most %.1f more than the limit lets through, as they arrived late", len(k.order), k.order[len(k.order)-1].Sub(k.begin), worst)
}

// waiting reports whether a delivery has not ended.
func (k *kills) waiting(p *process) bool {
	for _, status := range []delivery.Status{delivery.Created, delivery.Queued, delivery.Processing} {
		var page struct{ Deliveries []seen }
		if k.get(p, "/v1/deliveries?limit=1&status="+string(status), &page); len(page.Deliveries) > 0 {
			return true
		}
	}
	return false
}

// ended returns all sent deliveries and dead letters by ID.
func (k *kills) ended(p *process) map[string]seen {
	k.Helper()
	all := make(map[string]seen)
	for _, status := range []delivery.Status{delivery.Completed, delivery.Failed} {
		for cursor := ""; ; {
			var page struct {
				Deliveries []seen
				Next       string
			}
			k.get(p, "/v1/deliveries?limit=1000&status="+string(status)+"&cursor="+url.QueryEscape(cursor), &page)
			for _, d := range page.Deliveries {
				all[d.ID] = d
			}
			if cursor = page.Next; cursor == "" {
				break
			}
		}
	}
	return all
}

func (k *kills) get(p *process, what string, to any) {
	k.Helper()
	resp, err := http.Get("http://" + p.Serve.Admin + what)
	if err != nil {
		k.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(to); err != nil || resp.StatusCode != http.StatusOK {
		k.Fatal(resp.Status, err)
	}
}
