package dynamosqs

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/internal/stored"
)

// The items of the counts contain the total that is stored, including the bytes of requests. The stock of a named
// tenant is in one item per week of acceptance. A process that ends between two writes leaves these numbers wrong by
// one delivery. recount corrects the total. A week is deleted when no delivery of that week can be stored any more.

// bytesStored is the key of the bytes of requests among the counts. It is not a status.
const bytesStored delivery.Status = "bytes"

// A tenantWeek identifies the item of a tenant's week.
type tenantWeek struct {
	tenant string
	week   int64
}

const week = int64(7 * 24 * time.Hour / time.Millisecond)

// keptFor returns after how many milliseconds a delivery is assumed to be deleted: it may be deferred, attempted, kept
// as a dead letter, redriven once, and kept again.
func (s *Store) keptFor() int64 { return delivery.MaxAhead.Milliseconds() + 2*s.keepKeys() + 8*week }

// A meter is this store's knowledge of a tenant's stock or of the total.
type meter struct {
	read    stored.Stock  // as of the latest read
	unread  stored.Stock  // changes by this store that read may not include
	written stored.Stock  // the part of unread that was written before the next read begins
	at      time.Time     // when the latest read began; zero if there was none
	reads   int           // successful reads
	reading chan struct{} // contains one element during a read
}

func newMeter() *meter { return &meter{reading: make(chan struct{}, 1)} }

func (m *meter) known() stored.Stock { return m.read.Plus(m.unread) }

// usage contains the meters. The mutex is not held during requests to the table.
type usage struct {
	mu      sync.Mutex
	total   *meter
	tenants map[string]*meter
}

const (
	usageAge   = time.Second // how long a meter is valid while it is far below its limit; near the limit it is read for each request
	mostMeters = 10_000      // number of tenants' meters above which unused ones are dropped
)

// of returns a tenant's meter. It returns nil for the tenant without a name, which has no limit. u.mu is held.
func (u *usage) of(tenant string) *meter {
	if tenant == "" {
		return nil
	}
	m := u.tenants[tenant]
	if m == nil {
		if len(u.tenants) >= mostMeters {
			for name, m := range u.tenants {
				if m.unread == (stored.Stock{}) && time.Since(m.at) > time.Minute {
					delete(u.tenants, name)
				}
			}
		}
		m = newMeter()
		u.tenants[tenant] = m
	}
	return m
}

// change counts what this store stores or deletes for a tenant, before that is written.
func (u *usage) change(tenant string, by stored.Stock) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.total.unread = u.total.unread.Plus(by)
	if m := u.of(tenant); m != nil {
		m.unread = m.unread.Plus(by)
	}
}

// wrote adds differences that were written, of the total and of a tenant.
func (u *usage) wrote(total stored.Stock, tenant string, own stored.Stock) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.total.written = u.total.written.Plus(total)
	if m := u.of(tenant); m != nil {
		m.written = m.written.Plus(own)
	}
}

// reserve counts a request of a tenant if there is room for it, and returns an error otherwise.
func (s *Store) reserve(ctx context.Context, tenant string, add stored.Stock) error {
	most, u := stored.Stock{N: s.o.MaxStored, Bytes: s.o.MaxSize}, &s.usage
	u.mu.Lock()
	own := u.of(tenant)
	u.mu.Unlock()
	err := s.refresh(ctx, u.total, most, s.readTotal)
	if err == nil && own != nil {
		err = s.refresh(ctx, own, stored.Stock{N: most.N / 2, Bytes: most.Bytes / 2}, func(ctx context.Context) (stored.Stock, error) { return s.readTenant(ctx, tenant) })
	}
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	all := u.total.known().Plus(add)
	mine := all
	if own != nil {
		mine = own.known().Plus(add)
	}
	if err := stored.Fits(tenant, mine, all, most); err != nil {
		return err
	}
	u.total.unread = u.total.unread.Plus(add)
	if own != nil {
		own.unread = own.unread.Plus(add)
	}
	return nil
}

// refresh reads a meter again if necessary. Callers that wait for a read share the next one.
func (s *Store) refresh(ctx context.Context, m *meter, most stored.Stock, read func(context.Context) (stored.Stock, error)) error {
	u := &s.usage
	u.mu.Lock()
	known := !m.at.IsZero() && time.Since(m.at) < usageAge && !stored.Near(m.known(), most)
	reads := m.reads
	if len(m.reading) > 0 {
		reads++ // the present read may have begun before this call
	}
	u.mu.Unlock()
	if known {
		return nil
	}
	select {
	case m.reading <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-m.reading }()
	u.mu.Lock()
	if m.reads > reads {
		u.mu.Unlock()
		return nil
	}
	at, before := time.Now(), m.written
	m.written = stored.Stock{}
	u.mu.Unlock()
	is, err := read(ctx)
	u.mu.Lock()
	defer u.mu.Unlock()
	if err != nil {
		m.written = m.written.Plus(before)
		return err
	}
	m.read, m.unread, m.at = is, m.unread.Minus(before), at
	m.reads++
	return nil
}

func (s *Store) readTotal(ctx context.Context) (sum stored.Stock, err error) {
	names, err := s.upstreams(ctx)
	if err != nil {
		return sum, err
	}
	found := make([]stored.Stock, len(names))
	err = each(names, func(i int, upstream string) error {
		it, err := s.item(ctx, "C#"+partition(upstream), 0)
		for _, st := range statuses {
			found[i].N += number(it, "n_"+string(st))
		}
		found[i].Bytes = max(0, number(it, "n_"+string(bytesStored)))
		return err
	})
	for _, is := range found {
		sum = sum.Plus(is)
	}
	return sum, err
}

func (s *Store) readTenant(ctx context.Context, tenant string) (sum stored.Stock, err error) {
	err = s.query(ctx, &dynamodb.QueryInput{KeyConditionExpression: aws.String("k = :k AND n >= :n"), ConsistentRead: aws.Bool(true),
		ExpressionAttributeValues: item{":k": str(tenantKey(tenant)), ":n": num((now() - s.keptFor()) / week)}}, func(it item) (bool, error) {
		sum = sum.Plus(stored.Stock{N: number(it, "n_stored"), Bytes: number(it, "n_bytes")})
		return true, nil
	})
	return stored.Stock{N: max(0, sum.N), Bytes: max(0, sum.Bytes)}, err
}

func tenantKey(tenant string) string { return hashed("T", tenant) }

// stocks counts a record that was stored, or deleted if n is -1. Old records without a size are not counted.
func (w *work) stocks(r *record, n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[countKey{string(r.Upstream), bytesStored}] += n * r.Size
	if r.Tenant == "" || r.Size == 0 || r.Accepted < now()-w.s.keptFor() {
		return
	}
	k := tenantWeek{string(r.Tenant), r.Accepted / week}
	w.tenants[k] = w.tenants[k].Plus(stored.Stock{N: n, Bytes: n * r.Size})
}
