package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/inbox"
	"github.com/seed1158cd35/weir/observe/logs"
	weirprom "github.com/seed1158cd35/weir/observe/prometheus"
	"github.com/seed1158cd35/weir/sidecar/config"
	api "github.com/seed1158cd35/weir/sidecar/deliveries"
	"github.com/seed1158cd35/weir/sidecar/proxy"
)

// deliveries stores requests and sends them later. It is nil if the file configures none.
type deliveries struct {
	delivery.Queue
	engine  engine
	worker  *delivery.Worker
	metrics *weirprom.Deliveries
	refused func(logs.NotStored)
	failed  func(upstream, reason, id string) // is called for requests that were not stored because of weir itself
	ended   chan struct{}                     // closed when the worker has ended; nil until it runs
	cancel  context.CancelFunc
	inbox   *inbox.Inbox                    // nil unless requests arrive in a queue
	receive func(ctx context.Context)       // receives the queue's requests
	check   func(ctx context.Context) error // checks the store
	files   *delivery.Files                 // folder of large bodies; nil if there is none
	watch   func(ctx context.Context)       // checks the stores after they have failed

	suspects chan struct{} // has a value if the store has failed since its last check

	watching sync.WaitGroup
}

// A watcher receives notifications of due deliveries from elsewhere.
type watcher interface {
	Watch(ctx context.Context, kick func(upstream string), failed func(error))
}

func (s *Server) newDeliveries(c *config.Deliveries, registry prometheus.Registerer) error {
	if c == nil {
		return nil
	}
	callbacks, err := c.CallbacksOf(s.with.Env)
	if err != nil {
		return err
	}
	large, err := openBodies(c)
	if err != nil {
		return err
	}
	e, err := s.openDeliveries(c)
	if err != nil {
		return err
	}
	d := &deliveries{suspects: make(chan struct{}, 1), Queue: e, engine: e, metrics: weirprom.NewDeliveries(registry, e), refused: logs.Options{EachSecond: s.file.LogEach}.NotStored(s.log), failed: s.tells.failed}
	d.worker = &delivery.Worker{Queue: e, Owner: "weir", Sender: s.proxy.Sender, Schedule: s.proxy.ScheduleOf, GivesUp: s.proxy.GivesUp, Callbacks: callbacks, Bodies: large, MaxBody: c.MaxBody, Grace: forever, Events: s.deliveryEvents(d)}
	d.metrics.Holds(d.worker.Held)
	if c.InFleet() {
		d.worker.Owner, d.worker.Poll = process(), poll()
	}
	if err := s.openInbox(c.Requests, d); err != nil {
		return errors.Join(err, e.Close())
	}
	d.check = func(ctx context.Context) error {
		if c.InFleet() { // creating or upgrading a file may take longer
			bounded, cancel := context.WithTimeout(ctx, opening)
			defer cancel()
			ctx = bounded
		}
		return e.Check(ctx)
	}
	d.files, _ = large.(*delivery.Files)
	ctx, cancel := context.WithTimeout(context.Background(), opening)
	defer cancel()
	available := s.checkDeliveries(ctx, d)
	if !available {
		s.tells.failed("", "deliveries cannot be opened", "")
	}
	d.watch = func(ctx context.Context) { s.watchDeliveries(ctx, d, available) }
	s.deliveries = d
	s.proxy.Later(d)
	s.proxy.Answering(e)
	return nil
}

// deliveryEvents returns events that are counted and logged.
func (s *Server) deliveryEvents(d *deliveries) delivery.Events {
	counted, written := d.metrics.Events(), logs.Deliveries(s.log)
	return delivery.Events{
		Accepted: written.Accepted,
		Ended: func(of *delivery.Delivery, a *delivery.Attempt) {
			counted.Ended(of, a)
			written.Ended(of, a)
		},
		Dead: func(upstream string, why delivery.Reason, n int) {
			counted.Dead(upstream, why, n)
			written.Dead(upstream, why, n)
			if why != delivery.Dropped { // an operator caused it
				s.tells.died(upstream, string(why), n)
			}
		},
		Died: written.Died,
		Left: counted.Left,
		Lost: func(of *delivery.Delivery) {
			counted.Lost(of)
			written.Lost(of)
		},
		Error: func(doing, upstream string, err error) {
			d.suspect()
			written.Error(doing, upstream, err)
		},
	}
}

// Accept stores a request.
func (d *deliveries) Accept(ctx context.Context, r *delivery.Request) (delivery.Delivery, bool, error) {
	begin := time.Now()
	got, fresh, err := d.worker.Accept(ctx, r)
	if err == nil {
		d.metrics.Accepted(time.Since(begin))
	}
	return got, fresh, err
}

// Keep stores a large body next to the record of its request. Largest returns the size limit of such a body in bytes.
func (d *deliveries) Keep(ctx context.Context, r *delivery.Request, body io.Reader, most int64) error {
	return d.worker.Keep(ctx, r, body, most)
}

func (d *deliveries) Largest() int64 { return d.worker.MaxBody }

// Refused counts and logs a request that was not stored.
func (d *deliveries) Refused(n proxy.NotAccepted) {
	d.metrics.Refused(n.Upstream, n.Why)
	if n.System() {
		d.suspect()
		d.failed(n.Upstream, "request not stored: "+n.Why, n.Correlation)
	}
	d.refused(logs.NotStored{Upstream: n.Upstream, ID: n.Correlation, Delivery: n.ID, Why: n.Why, Field: n.Field, Err: n.Err})
}

// suspect has the deliveries' store checked.
func (d *deliveries) suspect() {
	select {
	case d.suspects <- struct{}{}:
	default:
	}
}

// Redrive sends dead letters again.
func (d *deliveries) Redrive(ctx context.Context, f delivery.Filter, most int) (int, error) {
	return d.worker.Redrive(ctx, f, most)
}

// Drop ends waiting deliveries, or deletes dead letters.
func (d *deliveries) Drop(ctx context.Context, f delivery.Filter, most int) (int, error) {
	return d.worker.Drop(ctx, f, most)
}

// operators returns the handler of operators' requests about deliveries, or nil if there are none.
func (d *deliveries) operators() http.Handler {
	if d == nil {
		return nil
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		api.API{Queue: d}.Serve(w, r, strings.TrimPrefix(r.URL.Path, api.Path), api.Caller{Operator: true})
	})
}

// callers returns the handler of decision callers' requests about their deliveries, or nil if there are none.
func (d *deliveries) callers() func(w http.ResponseWriter, r *http.Request, rest, caller string) {
	if d == nil {
		return nil
	}
	return func(w http.ResponseWriter, r *http.Request, rest, caller string) {
		api.API{Queue: d}.Serve(w, r, rest, api.Caller{Name: caller})
	}
}

// start starts sending due deliveries.
func (d *deliveries) start() {
	if d == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	d.cancel, d.ended = cancel, make(chan struct{})
	go func() {
		defer close(d.ended)
		d.worker.Run(ctx)
	}()
	if d.inbox != nil {
		d.watching.Go(func() { d.receive(ctx) })
	}
	d.watching.Go(func() { d.watch(ctx) })
	if w, ok := d.engine.(watcher); ok {
		d.watching.Go(func() {
			w.Watch(ctx, func(upstream string) {
				if d.worker.Sender(upstream) != nil {
					d.worker.Kick(upstream)
				}
			}, func(err error) { d.worker.Events.Error("receive", "", err) })
		})
	}
}

// moved makes waiting deliveries use the reloaded configuration.
func (d *deliveries) moved() {
	if d != nil {
		d.worker.Moved()
	}
}

// forever is the worker's grace period. The drain ends it after the file's drain time, which a reload can change.
const forever = math.MaxInt64

// leave stops new attempts, and cuts attempts in progress when patience ends. The returned function waits until no
// attempts remain, and reports whether some were cut.
func (d *deliveries) leave(patience context.Context) (ended func() (cut bool)) {
	if d == nil || d.ended == nil {
		return func() bool { return false }
	}
	d.cancel()
	return func() bool {
		select {
		case <-d.ended:
			return false
		case <-patience.Done():
		}
		d.worker.Cut()
		select {
		case <-d.ended:
		case <-time.After(ending): // the deliveries' store does not respond
		}
		return true
	}
}

// stop ends the worker after a time for attempts in progress, and closes the store.
func (d *deliveries) stop(most time.Duration) error {
	if d == nil {
		return nil
	}
	if d.ended != nil {
		patience, cancel := context.WithTimeout(context.Background(), most)
		d.leave(patience)()
		cancel()
	}
	closed := make(chan error, 1)
	go func() {
		d.watching.Wait()
		closed <- d.engine.Close()
	}()
	select {
	case err := <-closed:
		if err != nil {
			return fmt.Errorf("close the deliveries: %w", err)
		}
		return nil
	case <-time.After(ending):
		return errors.New("close the deliveries: their store does not answer; deliveries in flight are sent again after a restart")
	}
}

// ending is how long weir waits for the deliveries' store when it stops.
const ending = 5 * time.Second

// endDeliveries stops deliveries after calls have ended.
func (s *Server) endDeliveries() {
	if err := s.deliveries.stop(s.file.Drain); err != nil {
		s.log.Error("deliveries", "error", err.Error())
	}
}
