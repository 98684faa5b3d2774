package export

import (
	"math"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// A quota is a limit in the format of envoyproxy/ratelimit. Multiplier and Zone are weir's extensions.
type quota struct {
	Unit       string `yaml:"unit"`
	Amount     int64  `yaml:"requests_per_unit"`
	Multiplier int64  `yaml:"unit_multiplier,omitempty"`
	Zone       string `yaml:"zone,omitempty"`
}

// units are the units with a fixed length, the longest first.
var units = []struct {
	name string
	long time.Duration
}{{"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}, {"second", time.Second}}

// window converts a limit to a window of the rate limit service. plain is for services other than weir, which support
// neither multiples of units nor zones nor the calendar's weeks and months.
func (l *ledger) window(u *config.Upstream, one *limit.Limit, plain bool) (q quota, good bool) {
	field := "limits." + one.Name
	if !l.counts(u, one) {
		return q, false
	}
	if one.Amount > math.MaxUint32 {
		l.bad(u, field, "limit above 4294967295", "")
		return q, false
	}
	q.Amount = one.Amount
	if one.Shape == limit.Calendar {
		return l.calendar(u, one, q, plain)
	}
	if one.Per%time.Second != 0 {
		l.bad(u, field, "windows of fractional seconds", "")
		return q, false
	}
	for _, unit := range units {
		if one.Per%unit.long != 0 {
			continue
		}
		q.Unit = unit.name
		if n := int64(one.Per / unit.long); n > 1 {
			q.Multiplier = n
		}
		break
	}
	if plain && q.Multiplier > 0 {
		l.bad(u, field, "windows of several units", "")
		return q, false
	}
	l.warn(u, field, "a bucket that fills at %v becomes windows of %v: up to %d calls at once, and twice as many where two windows meet",
		one.Rate, one.Per, one.Amount)
	return q, true
}

func (l *ledger) calendar(u *config.Upstream, one *limit.Limit, q quota, plain bool) (quota, bool) {
	before, field := len(l.errs), "limits."+one.Name
	q.Unit = one.Every.String()
	if one.Zone != "UTC" {
		q.Zone = one.Zone
	}
	if q.Zone != "" && one.Every.Usual() < bucket.Day.Usual() {
		l.bad(u, field, "windows shorter than a day with a zone", "leave the zone out")
	}
	if plain && q.Zone != "" {
		l.bad(u, field, "zones", "")
	}
	if plain && (one.Every == bucket.Week || one.Every == bucket.Month) {
		l.bad(u, field, "calendar of weeks and months", "its weeks begin on Thursday and its months have 30 days")
	}
	return q, len(l.errs) == before
}
