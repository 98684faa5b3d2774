package decide

import (
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/limit"
)

// Lifetimes of permits.
const (
	shortestLife = time.Second
	longestLife  = 10 * time.Minute
	usualLife    = time.Minute
)

// An acquireRequest is the body of POST /v1/acquire. Fields with tags describe the call, the others the acquire.
type acquireRequest struct {
	Upstream  string            `json:"upstream"`
	Operation string            `json:"operation"`
	Keys      map[string]string `json:"keys"`
	Cost      map[string]int64  `json:"cost"`

	Priority string        `json:"-"`
	Safe     bool          `json:"-"`
	ID       string        `json:"-"`
	Wait     time.Duration `json:"-"`
	Life     time.Duration `json:"-"`

	path string // its position in the body
}

// decodeAcquire reads an acquire at a path of the body: "" for the whole body.
func decodeAcquire(o []member, path string, longest time.Duration) (*acquireRequest, *refuse.Facts) {
	wrong := mistakes{path: path}
	in := fields{all: o, wrong: &wrong}
	q := &acquireRequest{
		path:      path,
		Upstream:  in.needed("upstream", longestName),
		Operation: in.text("operation", longestName),
		Keys:      in.texts("keys", mostKeys, longestKey),
		Cost:      in.counts("cost"),
		Wait:      in.duration("wait", 0, longest, 0),
		Priority:  in.one("priority", "high", "normal", "low"),
		Safe:      in.flag("safe"),
		ID:        in.text("id", longestID),
		Life:      in.duration("expires", shortestLife, longestLife, usualLife),
	}
	if n := size(q.Keys); n > longestKeys {
		in.bad("keys", missing{}, "have %d bytes in total; want at most %d", n, longestKeys)
	}
	in.rest()
	return q, wrong.failure()
}

func size(keys map[string]string) (n int) {
	for k, v := range keys {
		n += len(k) + len(v)
	}
	return n
}

// call returns the call for the upstream's gates.
func (q *acquireRequest) call() weir.Call {
	return weir.Call{Operation: q.Operation, Keys: q.Keys, Cost: q.Cost, Safe: q.Safe, ID: q.ID, Priority: priorities[q.Priority]}
}

// priorities maps names to priorities. The default is normal.
var priorities = map[string]limit.Priority{"high": limit.High, "normal": limit.Normal, "low": limit.Low}

// print distinguishes calls with the same id.
func (q *acquireRequest) print() [sha256.Size]byte {
	b, err := json.Marshal(q) // sorts the keys of maps
	if err != nil {
		panic(err)
	}
	return sha256.Sum256(b)
}
