package status

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/scopes"
	"github.com/seed1158cd35/weir/limit/pause"
)

// A Pause stops calls for a time: all calls of the upstream, or the calls that are charged to a limit (or one key of
// it), to a pool, or of an operation.
type Pause struct {
	Of        string    `json:"of"` // upstream, limit, key, pool or operation
	Limit     string    `json:"limit,omitempty"`
	Scope     string    `json:"scope,omitempty"` // the scope of the key
	Key       string    `json:"key,omitempty"`
	Pool      string    `json:"pool,omitempty"`
	Operation string    `json:"operation,omitempty"`
	Reason    string    `json:"reason"`            // rate, quota, manual, or manual here: for this process only
	LeftMS    int64     `json:"left_ms"`           // -1 if it lasts until it is resumed
	ResetAt   time.Time `json:"reset_at,omitzero"` // when the quota resets, if the upstream reported that
	By        string    `json:"by,omitempty"`      // the process that received it first
}

func pauseOf(v *weir.PauseView) Pause {
	p := Pause{
		Of: v.Kind.String(), Limit: v.Limit, Scope: v.Scope, Key: v.Key, Pool: v.Pool, Operation: v.Operation,
		Reason: v.Reason.String(), LeftMS: max(1, v.Left.Milliseconds()), ResetAt: v.ResetAt, By: v.By,
	}
	if v.Open {
		p.LeftMS = -1
	}
	return p
}

// Whom describes the paused calls for people.
func (p *Pause) Whom() string {
	of := pause.Subject{Kind: pause.KindOf(p.Of), Name: cmp.Or(p.Limit, p.Pool, p.Operation), Scope: p.Scope, Key: p.Key}
	return of.String()
}

// A Pausing is an order to pause or resume calls.
type Pausing struct {
	Upstream  string  `json:"upstream"`
	Do        string  `json:"do"` // pause or resume
	Limit     string  `json:"limit"`
	Key       *string `json:"key"` // of the limit; nil means all keys
	Pool      *string `json:"pool"`
	Operation string  `json:"operation"`
	For       string  `json:"for"`  // duration; "" means until resumed
	Here      bool    `json:"here"` // in this process only
}

// Resumed is the response to an order to resume: the state of the upstream afterwards, and how many pauses were
// lifted.
type Resumed struct {
	Upstream
	Lifted int `json:"lifted"`
}

func (p *Page) pause(w http.ResponseWriter, r *http.Request) {
	var o Pausing
	if !read(w, r, &o, `{"upstream":"s3","do":"pause","limit":"put","for":"5m"}`) {
		return
	}
	u := p.named(w, o.Upstream)
	if u == nil {
		return
	}
	lifted, err := o.carryOut(u, p.name)
	switch {
	case err != nil:
		problem(w, http.StatusBadRequest, err.Error())
	case o.Do == "resume":
		answer(w, Resumed{stateOf(u), lifted})
	default:
		answer(w, stateOf(u))
	}
}

// Hold carries out an order, and returns how many pauses it lifted. An error describes the mistake in the order.
func (p *Page) Hold(o Pausing) (lifted int, err error) {
	u := p.Upstreams()[o.Upstream]
	if u == nil {
		return 0, unknown(o.Upstream)
	}
	return o.carryOut(u, p.name)
}

func (o *Pausing) carryOut(u *weir.Upstream, name namer) (lifted int, err error) {
	length, err := time.ParseDuration(o.For)
	if o.For != "" && (err != nil || length <= 0) {
		return 0, fmt.Errorf("for %q: want a duration such as 5m", o.For)
	}
	if o.For != "" && o.Do != "pause" {
		return 0, fmt.Errorf("for %q: only \"do\": \"pause\" has a duration", o.For)
	}
	of, err := o.subject(u, name)
	if err != nil {
		return 0, err
	}
	switch o.Do {
	case "pause":
		return 0, u.Pause(of, length, o.Here)
	case "resume":
		return u.Resume(of, o.Here)
	}
	return 0, fmt.Errorf("do %q: want pause or resume", o.Do)
}

// subject returns the calls that an order concerns: all calls if it names none.
func (o *Pausing) subject(u *weir.Upstream, name namer) (of pause.Subject, err error) {
	n := 0
	for _, named := range []bool{o.Limit != "", o.Pool != nil, o.Operation != ""} {
		if named {
			n++
		}
	}
	switch {
	case n > 1:
		return of, errors.New("limit, pool, operation: set at most one of them; without them, the command applies to all calls")
	case o.Key != nil && o.Limit == "":
		return of, fmt.Errorf("key %q: also set limit, to the limit that the key belongs to", *o.Key)
	case o.Key != nil:
		scope := scopeOf(u, o.Limit)
		return pause.OfKey(o.Limit, scope, name(scope, *o.Key)), nil
	case o.Limit != "":
		return pause.OfLimits(o.Limit), nil
	case o.Pool != nil:
		return pause.OfPool(*o.Pool), nil
	case o.Operation != "":
		return pause.OfOperation(o.Operation), nil
	}
	return pause.All(), nil
}

// A namer converts a key that an operator enters to its stored form.
type namer = func(scope, key string) string

func (p *Page) name(scope, key string) string {
	if p.Name == nil {
		return key
	}
	named, _ := scopes.Map(scope, key, p.Name)
	return named
}

// scopeOf returns the scope of a limit.
func scopeOf(u *weir.Upstream, name string) string {
	for _, l := range u.Policy().Limits {
		if l.Name == name {
			return l.Scope
		}
	}
	return ""
}
