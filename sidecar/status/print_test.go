package status

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

var sample = Report{
	Version: "v1.2.3",
	Fleet: &Fleet{Store: "redis", Client: "a1b2", Instances: 3, AwayMS: 1500, Why: "connection refused", Spent: 42, Parts: []Part{
		{Upstream: "s3", State: "cut_off", Part: 0.3125, LastsMS: 290_000, Silent: 0.25, Unknown: 0.125, UnknownMS: 60_000}, {Upstream: "chat", State: "new"},
	}},
	Upstreams: []Upstream{
		{
			Name: "s3", RetriesLeft: 42,
			Limits: []Limit{
				{Name: "put", Unit: "requests", Rule: "3000/s", Rate: 1812.345, Left: 2900, Full: 3000, ResetMS: 55},
				{Name: "tenant", Key: "acme", Unit: "bytes", Rule: "100/s burst 300", Rate: 100, Left: 0, Full: 300, ResetMS: 90_500, PausedMS: 1500},
				{Name: "tenant", Unit: "bytes", Rule: "100/s burst 300", Rate: 100, Left: 300, Full: 300, KeysKnown: 7},
				{Name: "day", Unit: "requests", Rule: "25 a day (America/Los_Angeles)", Rate: 0.0003, Left: 3, Full: 25, ResetMS: 7_200_000, ResetAt: time.Date(2026, 11, 20, 0, 0, 0, 0, time.FixedZone("", -8*3600))},
			},
			Breakers: []Breaker{{State: "open", Why: "too many failures", Failures: 5, WaitMS: 12_000}, {Key: "eu", State: "closed", Forced: true}, {Key: "us", State: "open", Why: "forced", WaitMS: -1, Forced: true}},
			Pauses: []Pause{
				{Of: "limit", Limit: "put", Reason: "manual", LeftMS: -1, By: "a1b2"}, {Of: "key", Limit: "tenant", Scope: "tenant", Key: "acme", Reason: "rate", LeftMS: 1500, By: "c3d4"},
				{Of: "operation", Operation: "list", Reason: "rate", LeftMS: 60_000}, {Of: "upstream", Reason: "manual here", LeftMS: 60_000},
			}, PausesInAll: 9,
		},
		{Name: "chat", Model: &Model{
			Tiers: []Tier{{Name: "primary", State: "open", Why: "quota spent", ForMS: 90_000, TakesMS: 1200, Answered: 120, Failed: 3, Skipped: 17}, {Name: "message", State: "closed", Answered: 17}},
			Cache: &Cache{Entries: 12, Bytes: 3 << 19, Hits: 5, Stale: 1, Misses: 12},
		}, Pauses: []Pause{{Of: "pool", Pool: "sha256:12/gpt", Reason: "quota", LeftMS: 90_000, ResetAt: time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)}}},
		{Name: "drs", Flights: []Flight{
			{State: "fixed", InFlight: 3, Bound: 20},
			{Operation: "put", State: "calm", InFlight: 31, Held: 2, Bound: 118, Waiting: 1, BaseMS: 83.25, Rate: 281.5, Refused: 17, Drains: 4, Probes: 2},
		}},
	},
}

const printed = `weir v1.2.3, up 1h2m3s
limits are shared through redis; processes: 3, this one is a1b2; the store has not answered for 1.5s, and this process has used 42 units since
  connection refused
  s3: cut_off, with 31.2% of each limit, which the store reserves for 4m50s; 25% is reserved for processes that stopped responding, 12.5% of it since before the store was emptied, for 1m0s
  chat: new, with 0% of each limit

s3                        retries remaining: 42
  LIMIT                   KEY              CONFIGURED                               RATE NOW  REMAINING  FULL IN                            PAUSED FOR
  put                     -                3000/s requests                          1812/s    2900/3000  55ms                               -
  tenant                  acme             100/s burst 300 bytes                    100/s     0/300      1m31s                              1.5s
  tenant                  (7 keys)         100/s burst 300 bytes                    100/s     300/300    now                                -
  day                     -                25 a day (America/Los_Angeles) requests  -         3/25       2h0m0s, 2026-11-20T00:00:00-08:00  -
  BREAKER                 STATE            REASON                                   FAILURES  NEXT PROBE IN
  -                       open             too many failures                        5         12s
  eu                      closed (forced)  -                                        0         -
  us                      open (forced)    forced                                   0         never
  PAUSED                  REASON           FOR                                      FIRST PROCESS
  limit put               manual           until it is resumed                      a1b2
  key tenant tenant=acme  rate             1.5s                                     c3d4
  operation list          rate             1m0s                                     -
  everything              manual here      1m0s                                     -
  and 5 more

chat       retries remaining: 0
  TIER     STATE   REASON       ANSWERED  FAILED  SKIPPED  LATENCY  NEXT PROBE IN
  primary  open    quota spent  120       3       17       1.2s     1m30s
  message  closed  -            17        0       0        -        -
  cache: 12 answers in 1.5 MiB; 5 hits, 1 stale, 0 old, 12 misses
  PAUSED              REASON  FOR                          FIRST PROCESS
  pool sha256:12/gpt  quota   1m30s, 2026-11-20T00:00:00Z  -

drs          retries remaining: 0
  IN FLIGHT  STATE  NOW     ABANDONED  WAITING  REFUSED  DRAINS  BASE LATENCY  RESPONSES
  (all)      fixed  3/20    0          0        0        0       -             -
  put        calm   31/118  2          1        17       4       83.2ms        281.5/s
`

func TestPrint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := sample
		r.Started = time.Now().Add(-time.Hour - 2*time.Minute - 3*time.Second)
		var b bytes.Buffer
		if err := Print(&b, r); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); got != printed {
			t.Errorf("got\n%s\nwant\n%s", got, printed)
		}
	})
}

func TestPrintNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		_ = Print(&b, Report{Version: "(devel)", Started: time.Now(), Draining: true})
		if got, want := b.String(), "weir (devel), up 0s, draining\nno upstreams\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestPrintTellsOfAFullDisk(t *testing.T) {
	if err := Print(full{}, sample); err == nil {
		t.Error("no error")
	}
}
