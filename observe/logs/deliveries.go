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

// Deliveries writes what people have to hear of calls that are made later.
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

// ofDelivery begins a line about one delivery, for those who look for it.
func (w *writer) ofDelivery(message string, of *delivery.Delivery) (*line, bool) {
	l, ok := w.always(slog.LevelDebug, message)
	if ok {
		l.word("upstream", of.Upstream)
		l.word("delivery", of.ID)
		l.id, l.keyed = of.Correlation, true
	}
	return l, ok
}

// attempted writes how an attempt ended, and the delivery with it if it did.
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

// NotStored is a request that was not stored to be delivered later.
type NotStored struct {
	Upstream string
	ID       string // correlation id of the call
	Delivery string // ID that the delivery would have; "" if it did not come so far
	Why      string // a word of weir's own
	Field    string // that is wrong; "" if none is
	Err      error  // of the queue
}

// NotStored writes a line for each request that was not stored, as many a second as the options say.
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
