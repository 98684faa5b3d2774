package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/observe/notify"
	"github.com/seed1158cd35/weir/sidecar/config"
)

//go:embed weir.yaml
var policy []byte

// Ntfy calls ntfy under one policy. The server and the Lambda functions use it.
type Ntfy struct {
	delivery.HTTP
	Schedule delivery.Schedule
	Choices  Choices
	Log      *slog.Logger
	Alerts   *notify.Notifier // nil disables alerts
}

// Choices configure the handling of failures.
type Choices struct {
	Open string // while ntfy's breaker is open, messages "fail" or "wait"
	Lost string // if a response is lost, ntfy may have the message: send it "again", or "stop"
}

func (c Choices) check() error {
	if !slices.Contains([]string{"fail", "wait"}, c.Open) || !slices.Contains([]string{"again", "stop"}, c.Lost) {
		return fmt.Errorf("open %q, lost %q: want fail or wait, and again or stop", c.Open, c.Lost)
	}
	return nil
}

// NewNtfy reads the policy from a file in the format of weir.yaml. An empty name is the embedded weir.yaml. A nil base is the
// default transport.
func NewNtfy(file, at string, c Choices, log *slog.Logger, alerts *notify.Notifier, base http.RoundTripper) (*Ntfy, error) {
	text, err := policy, c.check()
	if err == nil && file != "" {
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, err
	}
	f, err := config.Parse(cmp.Or(file, "weir.yaml"), text, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	u := f.Upstreams[0]
	n := &Ntfy{Choices: c, Log: log, Alerts: alerts}
	n.Schedule, _ = delivery.ScheduleOf(u.Schedule)
	credentials, err := f.SendsOf(u.Name, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	if n.Base = base; credentials != nil {
		n.Base = adds{credentials, base}
	}
	if n.URL = u.URL; at != "" {
		if n.URL, err = url.Parse(at); err != nil {
			return nil, err
		}
	}
	var events weir.Events
	if alerts != nil {
		events = alerts.Events()
	}
	n.Upstream, err = weir.New(u.Name, u.Policy, weir.Options{Events: events})
	return n, err
}

// adds is a transport that adds credentials.
type adds struct {
	http.Header
	base http.RoundTripper
}

func (a adds) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, values := range a.Header {
		r.Header[name] = values
	}
	if a.base == nil {
		return http.DefaultTransport.RoundTrip(r)
	}
	return a.base.RoundTrip(r)
}

// Worker returns a worker that sends the messages of a queue.
func (n *Ntfy) Worker(q delivery.Queue) *delivery.Worker {
	return &delivery.Worker{
		Queue: q, Owner: "messages", Poll: time.Second,
		Sender: func(upstream string) delivery.Sender {
			if stage, ok := strings.CutPrefix(upstream, lane); ok && slices.Contains(stages, stage) {
				return n
			}
			return nil
		},
		Schedule: func(string) delivery.Schedule { return n.Schedule },
		GivesUp: func(string) delivery.GiveUp {
			return delivery.GiveUp{Open: n.Choices.Open == "fail", Unknown: n.Choices.Lost == "stop"}
		},
		Events: delivery.Events{
			Ended: func(d *delivery.Delivery, _ *delivery.Attempt) {
				if m := messageOf(d); m.Status == Failed {
					n.failed(&m)
				} else {
					n.Log.Info("message "+string(m.Status), "message", m.ID, "stage", m.Stage)
				}
			},
			Dead: func(upstream string, why delivery.Reason, number int) { n.died(upstream, string(why), number) },
			Error: func(doing, upstream string, err error) {
				n.Log.Error("queue", "doing", doing, "upstream", upstream, "error", err)
			},
		},
	}
}

// failed logs a failed message.
func (n *Ntfy) failed(m *Message) {
	n.Log.Error("message failed", "message", m.ID, "stage", m.Stage, "reason", m.Reason, "detail", m.Detail)
}

// died notifies people of dead letters.
func (n *Ntfy) died(upstream, why string, number int) {
	if n.Alerts != nil {
		n.Alerts.Died(upstream, why, number)
	}
}
