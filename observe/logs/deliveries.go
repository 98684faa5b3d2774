package logs

import (
	"log/slog"
	"time"

	"github.com/seed1158cd35/weir/delivery"
)

const (
	deliveryDied   = "deliveries became dead letters"
	deliveryLost   = "delivery claim lost"
	deliveryFile   = "delivery queue failed"
	deliveryStored = "request stored"
	deliveryTried  = "delivery attempted"
	deliveryOver   = "delivery ended"
	deadLetter     = "delivery became a dead letter"
	notStored      = "request not stored"
)

// Deliveries logs what operators must know about deliveries.
func Deliveries(log *slog.Logger) delivery.Events {
	w := &writer{log: log}
	return delivery.Events{
		Accepted: func(of *delivery.Delivery, fresh bool) {
			if l, ok := w.ofDelivery(deliveryStored, of); ok {
				l.count("attempt", of.Attempts)
				l.word("status", string(of.Status))
				if !fresh {
					l.word("fresh", "false")
				}
				w.end(l)
			}
		},
		Ended: w.attempted,
		Dead: func(upstream string, why delivery.Reason, n int) {
			log.Error(deliveryDied, "upstream", upstream, "reason", string(why), "number", n)
		},
		Died: func(of delivery.Letter) {
			log.Warn(deadLetter, "upstream", of.Upstream, "delivery", of.ID, "attempt", of.Attempts, "status", string(delivery.Failed), "reason", string(of.Reason), "id", of.Correlation)
		},
		Lost: func(of *delivery.Delivery) {
			log.Warn(deliveryLost, "upstream", of.Upstream, "delivery", of.ID, "id", of.Correlation)
		},
		Error: func(doing, upstream string, cause error) {
			log.Error(deliveryFile, "doing", doing, "upstream", upstream, "error", cause.Error())
		},
	}
}

// ofDelivery begins a debug line about one delivery.
func (w *writer) ofDelivery(message string, of *delivery.Delivery) (*line, bool) {
	l, ok := w.always(slog.LevelDebug, message)
	if ok {
		l.word("upstream", of.Upstream)
		l.word("delivery", of.ID)
		l.id, l.keyed = of.Correlation, true
	}
	return l, ok
}

// attempted logs the result of an attempt and, if the attempt ended the delivery, the result of the delivery.
func (w *writer) attempted(of *delivery.Delivery, a *delivery.Attempt) {
	l, ok := w.ofDelivery(deliveryTried, of)
	if !ok {
		return
	}
	l.count("attempt", a.N)
	l.count("status", a.Status)
	l.word("class", a.Class.String())
	l.text("code", a.Code)
	l.wait("took", a.Took)
	if of.Waits() {
		l.word("due", of.Due.UTC().Format(time.RFC3339))
	}
	w.end(l)
	if of.Waits() {
		return
	}
	if l, ok = w.ofDelivery(deliveryOver, of); ok {
		l.count("attempt", a.N)
		l.word("status", string(of.Status))
		l.word("reason", string(of.Reason))
		w.end(l)
	}
}

// NotStored describes a request that was not stored for later delivery.
type NotStored struct {
	Upstream string
	ID       string // correlation ID of the call
	Delivery string // ID of the intended delivery; "" if none was assigned yet
	Why      string // a fixed value
	Field    string // the invalid field; "" if none is
	Err      error  // error of the queue
}

// NotStored returns a function that logs each request that was not stored, within EachSecond.
func (o Options) NotStored(log *slog.Logger) func(NotStored) {
	w := &writer{log: log, begun: time.Now(), sieve: newSieve(o.EachSecond)}
	return func(n NotStored) {
		l, ok := w.begin(slog.LevelWarn, kind{notStored, n.Upstream, "", n.Why})
		if !ok {
			return
		}
		l.word("upstream", n.Upstream)
		l.word("reason", n.Why)
		l.text("field", n.Field)
		l.word("delivery", n.Delivery)
		if n.Err != nil {
			l.text("error", n.Err.Error())
		}
		l.id = n.ID
		w.end(l)
	}
}
