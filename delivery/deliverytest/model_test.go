package deliverytest

import (
	"testing"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/internal/test/watchdog"
)

func TestMain(m *testing.M) { watchdog.Run(m) }

var start = time.Unix(1000, 0)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

func accepted(fresh bool) *call { return &call{what: accepts, done: fresh, id: "d"} }

func claimed(fence int64, attempts int) *call {
	return &call{what: claims, lease: lease, done: true, id: "d", fence: fence, attempts: attempts}
}

func ended(fence int64, to delivery.Status, kept bool) *call {
	return &call{what: ends, claim: fence, to: delivery.End{To: to}, done: kept}
}

func of(what string, done bool) *call { return &call{what: what, done: done, id: "d"} }

func (c *call) at(seconds int) *call {
	c.from, c.until = at(seconds), at(seconds)
	return c
}

func (c *call) unheard() *call {
	c.unknown, c.done = true, false
	return c
}

func seen(status delivery.Status, fence int64, attempts int) *call {
	return &call{what: looks, done: true, id: "d", status: status, fence: fence, attempts: attempts}
}

// Sequential calls: each returns before the next one begins.
func TestTheModel(t *testing.T) {
	completed, failed, queued := delivery.Completed, delivery.Failed, delivery.Queued
	again := func(kept bool) *call {
		c := ended(1, completed, kept)
		c.to.Again = true
		return c
	}
	later := ended(1, queued, true)
	later.to.Due = at(10)
	back := ended(1, queued, true)
	back.to.GiveBack = true
	another := accepted(false)
	another.id = "other"
	line := accepted(true)
	line.ordered = true
	for name, c := range map[string]struct {
		lawful bool
		calls  []*call
	}{
		"delivered":                {true, []*call{accepted(true), claimed(1, 1), ended(1, completed, true), seen(completed, 1, 1)}},
		"never accepted":           {false, []*call{claimed(1, 1)}},
		"known":                    {true, []*call{accepted(true), accepted(false)}},
		"stored twice":             {false, []*call{accepted(true), accepted(true)}},
		"another ID":               {false, []*call{accepted(true), another}},
		"claimed twice at once":    {false, []*call{accepted(true), claimed(1, 1), claimed(2, 2)}},
		"claimed after success":    {false, []*call{accepted(true), claimed(1, 1), ended(1, completed, true), claimed(2, 2)}},
		"claimed by an old fence":  {false, []*call{accepted(true), claimed(1, 1), ended(1, queued, true), claimed(1, 2)}},
		"an attempt forgotten":     {false, []*call{accepted(true), claimed(1, 1), ended(1, queued, true), claimed(2, 1)}},
		"given back":               {true, []*call{accepted(true), claimed(1, 1), back, claimed(2, 1)}},
		"claimed before it is due": {false, []*call{accepted(true), claimed(1, 1), later, claimed(2, 2).at(9)}},
		"claimed when it is due":   {true, []*call{accepted(true), claimed(1, 1), later, claimed(2, 2).at(10)}},
		"reaped":                   {true, []*call{accepted(true), claimed(1, 1).at(0), of(sweeps, true).at(30), claimed(2, 2).at(30), ended(1, completed, false), ended(2, completed, true)}},
		"reaped before its time":   {false, []*call{accepted(true), claimed(1, 1).at(0), of(sweeps, true).at(29), claimed(2, 2).at(29)}},
		"reaped though renewed":    {false, []*call{accepted(true), claimed(1, 1).at(0), {what: renews, claim: 1, lease: lease, done: true, from: at(20), until: at(20)}, of(sweeps, true).at(30), claimed(2, 2).at(30)}},
		"reaped late, and kept":    {true, []*call{accepted(true), claimed(1, 1).at(0), of(sweeps, true).at(40), ended(1, completed, true)}},
		"a fenced end counts":      {false, []*call{accepted(true), claimed(1, 1).at(0), of(sweeps, true).at(30), claimed(2, 2).at(30), ended(1, completed, true)}},
		"a fenced end changes":     {false, []*call{accepted(true), claimed(1, 1), ended(1, queued, true), claimed(2, 2), ended(1, failed, false), seen(failed, 2, 2)}},
		"a good end is lost":       {false, []*call{accepted(true), claimed(1, 1), ended(1, completed, false)}},
		"recorded twice":           {false, []*call{accepted(true), claimed(1, 1), ended(1, completed, true), ended(1, completed, true)}},
		"recorded, unheard":        {true, []*call{accepted(true), claimed(1, 1), ended(1, completed, true).unheard(), again(true), seen(completed, 1, 1)}},
		"not recorded, unheard":    {true, []*call{accepted(true), claimed(1, 1), ended(1, completed, true).unheard(), seen(delivery.Processing, 1, 1), again(true), seen(completed, 1, 1)}},
		"said to be recorded":      {false, []*call{accepted(true), claimed(1, 1), again(true), seen(delivery.Processing, 1, 1)}},
		"unheard accept":           {true, []*call{accepted(true).unheard(), accepted(false)}},
		"unheard accept, nothing":  {true, []*call{accepted(true).unheard(), accepted(true)}},
		"nothing is unheard":       {false, []*call{accepted(false)}},
		"unheard claim":            {true, []*call{accepted(true), claimed(1, 1).unheard(), seen(delivery.Processing, 1, 1), seen(queued, 1, 0), claimed(2, 1)}},
		"redriven":                 {true, []*call{accepted(true), claimed(1, 1), ended(1, failed, true), of(redrives, true), claimed(3, 1)}},
		"redriven, of success":     {false, []*call{accepted(true), claimed(1, 1), ended(1, completed, true), of(redrives, true)}},
		"dropped":                  {true, []*call{accepted(true), of(drops, true), seen(failed, 0, 0)}},
		"dropped while sent":       {false, []*call{accepted(true), claimed(1, 1), of(drops, true)}},
		"deleted":                  {true, []*call{accepted(true), of(drops, true), of(erases, true), of(looks, false), accepted(false)}},
		"deleted, key forgotten":   {false, []*call{accepted(true), of(drops, true), of(erases, true), accepted(true)}},
		"lost":                     {false, []*call{accepted(true), of(looks, false)}},
		"in its line":              {true, []*call{line, seen(delivery.Created, 0, 0), seen(queued, 0, 0), claimed(1, 1)}},
		"back in its line":         {false, []*call{line, seen(queued, 0, 0), seen(delivery.Created, 0, 0)}},
	} {
		for i, one := range c.calls {
			one.before, one.after = int64(2*i), int64(2*i+1)
		}
		if got := lawful(c.calls); got != c.lawful {
			t.Errorf("%s: lawful %v", name, got)
		}
	}
	stalls := []*call{accepted(true)}
	for n := range delivery.MaxStalls {
		stalls = append(stalls, claimed(int64(n+1), n+1).at(40*n), of(sweeps, true).at(40*n+39))
	}
	stalls = append(stalls, claimed(4, 4).at(200))
	for i, one := range stalls {
		one.before, one.after = int64(2*i), int64(2*i+1)
	}
	if lawful(stalls) {
		t.Error("claimed after the last stall")
	}
}

// Concurrent calls may take effect in any order.
func TestTheModelOfWhatIsAtOnce(t *testing.T) {
	first, second := accepted(true), claimed(1, 1)
	first.before, first.after, second.before, second.after = 1, 4, 2, 3
	if !lawful([]*call{first, second}) {
		t.Error("a delivery is claimed before the accept has returned")
	}
	if first.after, second.before, second.after = 2, 3, 4; !lawful([]*call{first, second}) {
		t.Error("a delivery is claimed")
	}
	if first.before, first.after = 5, 6; lawful([]*call{first, second}) {
		t.Error("a delivery is claimed before it was handed in")
	}
}
