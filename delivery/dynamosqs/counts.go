package dynamosqs

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/internal/stored"
)

type countKey struct {
	upstream string
	status   delivery.Status
}

var statuses = [...]delivery.Status{delivery.Created, delivery.Queued, delivery.Processing, delivery.Completed, delivery.Failed}

// owed contains differences that are still to be written, of the counts and of the tenants' stock.
type owed struct {
	counts  map[countKey]int64
	tenants map[tenantWeek]stored.Stock
}

func newOwed() owed {
	return owed{counts: make(map[countKey]int64), tenants: make(map[tenantWeek]stored.Stock)}
}

func (o *owed) add(other owed) {
	for k, n := range other.counts {
		o.counts[k] += n
	}
	for k, s := range other.tenants {
		o.tenants[k] = o.tenants[k].Plus(s)
	}
}

// A work collects the differences of one operation, which are written together.
type work struct {
	s  *Store
	mu sync.Mutex
	owed
}

func (s *Store) work() *work { return &work{s: s, owed: newOwed()} }

// moved counts a record that came to its status from another. An empty status means that it did not exist.
func (w *work) moved(r *record, from delivery.Status) { w.moves(string(r.Upstream), from, r.Status) }

func (w *work) moves(upstream string, from, to delivery.Status) {
	if from == to {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if from != "" {
		w.counts[countKey{upstream, from}]--
	}
	if to != "" {
		w.counts[countKey{upstream, to}]++
	}
}

// done writes the differences. Differences that cannot be written now are written later, because the operation itself has
// succeeded.
func (w *work) done(ctx context.Context) {
	w.owe()
	w.s.pay(context.WithoutCancel(ctx))
}

// owe leaves the differences to be written later.
func (w *work) owe() {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	w.s.owed.add(w.owed)
	w.owed = newOwed()
}

// counted lists the numbers in the item of an upstream.
var counted = append(statuses[:len(statuses):len(statuses)], bytesStored)

// pay writes the pending differences, with one write per upstream and one per week of a tenant. If the process ends
// before, they are lost until recount corrects the numbers.
func (s *Store) pay(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, accepting)
	defer cancel()
	s.mu.Lock()
	owes := s.owed
	s.owed = newOwed()
	s.mu.Unlock()
	var writes []func() error
	of := make(map[string]owed)
	for k, n := range owes.counts {
		if of[k.upstream].counts == nil {
			of[k.upstream] = newOwed()
		}
		of[k.upstream].counts[k] = n
	}
	for upstream, o := range of {
		writes = append(writes, func() error { return s.payCounts(ctx, upstream, o) })
	}
	for k, is := range owes.tenants {
		writes = append(writes, func() error { return s.payTenant(ctx, k, is) })
	}
	_ = each(writes, func(_ int, write func() error) error { return write() })
}

func (s *Store) payCounts(ctx context.Context, upstream string, o owed) error {
	var adds []string
	var change stored.Stock
	values := make(item)
	for _, st := range counted {
		n := o.counts[countKey{upstream, st}]
		if n == 0 {
			continue
		}
		adds, values[":"+string(st)] = append(adds, fmt.Sprintf("n_%s :%s", st, st)), num(n)
		if st == bytesStored {
			change.Bytes = n
		} else {
			change.N += n
		}
	}
	if len(adds) == 0 {
		return nil
	}
	_, _, err := s.update(ctx, "C#"+partition(upstream), 0, "ADD "+strings.Join(adds, ", "), "", values)
	if err == nil {
		s.usage.wrote(change, "", stored.Stock{})
		return nil
	}
	s.owes(o)
	return err
}

func (s *Store) payTenant(ctx context.Context, k tenantWeek, is stored.Stock) error {
	if is == (stored.Stock{}) {
		return nil
	}
	_, _, err := s.update(ctx, tenantKey(k.tenant), k.week, "ADD n_stored :n, n_bytes :b SET #ttl = :ttl", "",
		item{":n": num(is.N), ":b": num(is.Bytes), ":ttl": num(((k.week+1)*week + s.keptFor()) / 1000)})
	if err == nil {
		s.usage.wrote(stored.Stock{}, k.tenant, is)
		return nil
	}
	s.owes(owed{tenants: map[tenantWeek]stored.Stock{k: is}})
	return err
}

func (s *Store) owes(o owed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owed.add(o)
}

// know adds an upstream to the table's list before any of its deliveries is stored.
func (s *Store) know(ctx context.Context, upstream string) error {
	s.mu.Lock()
	known := s.known[upstream]
	s.mu.Unlock()
	if known {
		return nil
	}
	_, _, err := s.update(ctx, "U", 0, "ADD upstreams :u", "", item{":u": &types.AttributeValueMemberSS{Value: []string{partition(upstream)}}})
	if err == nil {
		s.mu.Lock()
		s.known[upstream] = true
		s.mu.Unlock()
	}
	return err
}

// upstreams returns all upstreams that ever had a delivery.
func (s *Store) upstreams(ctx context.Context) ([]string, error) {
	it, err := s.item(ctx, "U", 0)
	if err != nil {
		return nil, err
	}
	set, _ := it["upstreams"].(*types.AttributeValueMemberSS)
	if set == nil {
		return nil, nil
	}
	all := slices.Clone(set.Value)
	for i, u := range all {
		if plain, err := strconv.Unquote(u); err == nil {
			all[i] = plain
		}
	}
	slices.Sort(all)
	return all, nil
}

// Counts returns the stored counts. If an upstream has a queued delivery, the result contains at least 1 for it, even
// if a process that ended has left the counts wrong.
func (s *Store) Counts(ctx context.Context) (all []delivery.Count, err error) {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	s.pay(ctx)
	names, err := s.upstreams(ctx)
	if err != nil {
		return nil, s.explain("counts", err)
	}
	found := make([][]delivery.Count, len(names))
	err = each(names, func(i int, upstream string) (err error) {
		found[i], err = s.countsOf(ctx, upstream)
		return err
	})
	return slices.Concat(found...), s.explain("counts", err)
}

func (s *Store) countsOf(ctx context.Context, upstream string) (all []delivery.Count, err error) {
	it, err := s.item(ctx, "C#"+partition(upstream), 0)
	if err != nil {
		return nil, err
	}
	for _, st := range statuses {
		c := delivery.Count{Upstream: upstream, Status: st, N: number(it, "n_"+string(st))}
		if st == delivery.Failed && c.N > 0 || st == delivery.Queued && c.N <= 0 {
			first, ok, err := s.first(ctx, string(st), upstream)
			switch {
			case err != nil:
				return nil, err
			case !ok:
				continue
			case st == delivery.Failed:
				c.Oldest = stored.At(first)
			default:
				c.N = 1
			}
		}
		if c.N > 0 {
			all = append(all, c)
		}
	}
	waiting := slices.ContainsFunc(all, func(c delivery.Count) bool { return c.Status == delivery.Created || c.Status == delivery.Queued })
	if !waiting {
		return all, nil
	}
	since, err := s.acceptedFirst(ctx, upstream)
	for i := range all {
		if all[i].Status == delivery.Created || all[i].Status == delivery.Queued {
			all[i].Waiting = since
		}
	}
	return all, err
}

// acceptedFirst returns when the queued delivery that is due first was accepted; zero if none is queued. It reads only
// that one, because the index contains only keys.
func (s *Store) acceptedFirst(ctx context.Context, upstream string) (at time.Time, err error) {
	var seq int64
	found := false
	err = s.query(ctx, &dynamodb.QueryInput{IndexName: aws.String("due"), KeyConditionExpression: aws.String("q = :q"), Limit: aws.Int32(1),
		ExpressionAttributeValues: item{":q": str(string(delivery.Queued) + " " + partition(upstream))}}, func(it item) (bool, error) {
		seq, found = seqIn(it), true
		return false, nil
	})
	if err != nil || !found {
		return at, err
	}
	r, err := s.get(ctx, seq)
	if err != nil || r == nil {
		return at, err
	}
	return stored.At(r.Accepted), nil
}

// first returns the earliest time in the index due for an upstream and status.
func (s *Store) first(ctx context.Context, status, upstream string) (ms int64, ok bool, err error) {
	err = s.query(ctx, &dynamodb.QueryInput{IndexName: aws.String("due"), KeyConditionExpression: aws.String("q = :q"), Limit: aws.Int32(1),
		ExpressionAttributeValues: item{":q": str(status + " " + partition(upstream))}}, func(it item) (bool, error) {
		ms, ok = instant(it), true
		return false, nil
	})
	return ms, ok, err
}

// instant returns the time in a position of the index due.
func instant(it item) int64 {
	of, _, _ := strings.Cut(text(it, "d"), " ")
	ms, _ := strconv.ParseInt(of, 10, 64)
	return ms
}

// recounting is the interval at which a store compares the counts with the deliveries.
const recounting = time.Hour

// recount corrects the counts of upstreams whose counts do not change meanwhile.
func (s *Store) recount(ctx context.Context) error {
	s.mu.Lock()
	due := time.Since(s.summed) >= recounting
	if due {
		s.summed = time.Now()
	}
	s.mu.Unlock()
	if !due {
		return nil
	}
	names, err := s.upstreams(ctx)
	for _, upstream := range names {
		if err == nil {
			err = s.recountOf(ctx, upstream)
		}
	}
	return err
}

func (s *Store) recountOf(ctx context.Context, upstream string) error {
	k := "C#" + partition(upstream)
	before, err := s.item(ctx, k, 0)
	if err != nil {
		return err
	}
	same, sets, values := "", "", make(item)
	var was, is int64
	for _, st := range counted {
		n := number(before, "n_"+string(st))
		if st != bytesStored {
			was += n
			if n, err = s.number(ctx, upstream, st); err != nil {
				return err
			}
			is += n
		} else if n = max(0, n); is != was || is == 0 { // the wrong part of the bytes is unknown: assume the mean size for each delivery
			n = int64(float64(n) / float64(max(1, was)) * float64(is))
		}
		name := "n_" + string(st)
		if v, there := before[name]; there {
			same, values[":was_"+string(st)] = same+" AND "+name+" = :was_"+string(st), v
		} else {
			same += " AND attribute_not_exists(" + name + ")"
		}
		if n != number(before, name) {
			sets, values[":"+string(st)] = sets+", "+name+" = :"+string(st), num(n)
		}
	}
	if sets == "" {
		return nil
	}
	_, _, err = s.update(ctx, k, 0, "SET "+sets[2:], same[len(" AND "):], values) // if the condition does not hold, a later recount tries again
	return err
}

func (s *Store) number(ctx context.Context, upstream string, st delivery.Status) (n int64, err error) {
	in := &dynamodb.QueryInput{TableName: &s.o.Name, IndexName: aws.String("list"), KeyConditionExpression: aws.String("s = :s"), Select: types.SelectCount,
		ExpressionAttributeValues: item{":s": str(string(st) + " " + partition(upstream))}}
	for {
		out, err := s.o.Table.Query(ctx, in, soon)
		if err != nil {
			return 0, err
		}
		n += int64(out.Count)
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
			return n, nil
		}
	}
}
