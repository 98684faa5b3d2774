package llmsim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/seed1158cd35/weir/llm"
)

// wireFault is the JSON form of a Fault in POST /_sim/faults. Durations use Go's format.
type wireFault struct {
	Kind     Kind       `json:"kind"`
	Family   llm.Family `json:"family,omitempty"`
	Model    string     `json:"model,omitempty"`
	Key      string     `json:"key,omitempty"`
	Times    int        `json:"times,omitempty"`
	For      duration   `json:"for,omitzero"`
	Where    Where      `json:"where,omitempty"`
	Events   int        `json:"events,omitempty"`
	Status   int        `json:"status,omitempty"`
	Hint     duration   `json:"hint,omitzero"`
	NoHint   bool       `json:"no_hint,omitempty"`
	Day      bool       `json:"day,omitempty"`
	Tokens   bool       `json:"tokens,omitempty"`
	Factor   float64    `json:"factor,omitempty"`
	Delay    duration   `json:"delay,omitzero"`
	Location string     `json:"location,omitempty"`
}

type duration time.Duration

func (d *duration) UnmarshalText(b []byte) error {
	x, err := time.ParseDuration(string(b))
	*d = duration(x)
	return err
}

func (d duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

func (f wireFault) fault() Fault {
	return Fault{
		Kind: f.Kind, Family: f.Family, Model: f.Model, Key: f.Key, Times: f.Times, For: time.Duration(f.For),
		Where: f.Where, Events: f.Events, Status: f.Status, Hint: time.Duration(f.Hint), NoHint: f.NoHint, Day: f.Day,
		Tokens: f.Tokens, Factor: f.Factor, Delay: time.Duration(f.Delay), Location: f.Location,
	}
}

func (f Fault) wire() wireFault {
	return wireFault{
		Kind: f.Kind, Family: f.Family, Model: f.Model, Key: f.Key, Times: f.Times, For: duration(f.For),
		Where: f.Where, Events: f.Events, Status: f.Status, Hint: duration(f.Hint), NoHint: f.NoHint, Day: f.Day,
		Tokens: f.Tokens, Factor: f.Factor, Delay: duration(f.Delay), Location: f.Location,
	}
}

// control serves tests in other languages.
func (p *Provider) control(w http.ResponseWriter, r *http.Request) {
	switch r.Method + " " + r.URL.Path {
	case "POST /_sim/faults":
		p.order(w, r)
	case "DELETE /_sim/faults":
		p.Clear()
		w.WriteHeader(http.StatusNoContent)
	case "POST /_sim/reset":
		p.Reset()
		w.WriteHeader(http.StatusNoContent)
	case "GET /_sim/state":
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(p.State()) // the caller may have disconnected
	default:
		http.Error(w, "there are POST and DELETE /_sim/faults, POST /_sim/reset, GET /_sim/state", http.StatusNotFound)
	}
}

// order injects the fault or the list of faults in a request.
func (p *Provider) order(w http.ResponseWriter, r *http.Request) {
	faults, err := readFaults(io.LimitReader(r.Body, 1<<20))
	for _, f := range faults {
		err = cmp.Or(err, f.check())
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	down := func(f Fault) bool { return f.Kind == Down }
	for _, f := range faults {
		if !down(f) {
			p.Fault(f) // before the response, so that the caller can rely on the fault
		}
	}
	w.WriteHeader(http.StatusNoContent)
	_ = http.NewResponseController(w).Flush()
	for _, f := range faults {
		if down(f) {
			p.Fault(f) // closes this connection
		}
	}
}

func readFaults(in io.Reader) (all []Fault, err error) {
	var raw json.RawMessage
	if err := json.NewDecoder(in).Decode(&raw); err != nil {
		return nil, fmt.Errorf("faults: %w", err)
	}
	var list []wireFault
	if raw[0] != '[' {
		list = make([]wireFault, 1)
		err = json.Unmarshal(raw, &list[0])
	} else {
		err = json.Unmarshal(raw, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("faults: %w", err)
	}
	for _, f := range list {
		all = append(all, f.fault())
	}
	return all, nil
}

// A State is the state of a provider.
type State struct {
	Attempts   []Attempt   `json:"attempts"`
	Violations []string    `json:"violations"`
	Open       int         `json:"open"`    // streams
	Granted    int         `json:"granted"` // attempts
	Refused    int         `json:"refused"` // attempts, by limits and by faults
	Left       int         `json:"left"`    // attempts whose callers disconnected
	Faults     []wireFault `json:"faults"`  // current faults
}

// State returns the current state.
func (p *Provider) State() State {
	s := State{Attempts: p.Log(), Violations: append([]string{}, p.Violations()...), Open: p.Open(), Refused: p.Refused(), Faults: []wireFault{}}
	for _, a := range s.Attempts {
		if a.Granted {
			s.Granted++
		}
		if a.Left {
			s.Left++
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	for _, f := range p.faults {
		if !f.over(now) {
			s.Faults = append(s.Faults, f.wire())
		}
	}
	return s
}
