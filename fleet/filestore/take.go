package filestore

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/seed1158cd35/weir/fleet"
)

// mostName is the maximum total length of the names of an entry. bbolt allows keys of up to 32,768 bytes.
const mostName = 24 << 10

func checkNames(names ...string) error {
	n := 0
	for _, s := range names {
		n += len(s)
	}
	if n > mostName {
		return fmt.Errorf("%w: names of %d bytes: %d at most", fleet.ErrAsk, n, mostName)
	}
	return nil
}

// Take implements fleet.Store.
func (s *Store) Take(ctx context.Context, a *fleet.Ask) error {
	a.Granted, a.Grants = 0, a.Grants[:0]
	k, err := checked(a)
	if err != nil {
		return err
	}
	// The write may continue after the caller has left, so it uses a copy of the ask.
	own := *a
	own.Settle, own.Claims, own.Grants = slices.Clone(a.Settle), slices.Clone(a.Claims), nil
	err = s.do(ctx, func(t *txn) error { return t.take(&own, k) })
	if ctx.Err() != nil && err != nil {
		return err
	}
	a.Now = own.Now
	if err != nil {
		return err
	}
	a.Granted, a.Grants = own.Granted, append(a.Grants, own.Grants...)
	return nil
}

// names are the keys in the file that an ask uses.
type names struct {
	lane           []byte
	settle, claims []string
}

func checked(a *fleet.Ask) (k names, err error) {
	if err := a.Check(); err != nil {
		return k, err
	}
	k.lane = binary.BigEndian.AppendUint64(key(a.Group), a.Lane)
	for i := range a.Settle {
		err = firstOf(err, checkNames(a.Group, a.Settle[i].Rule.Name, a.Settle[i].Key))
		k.settle = append(k.settle, string(key(a.Group, a.Settle[i].Rule.Name, a.Settle[i].Key)))
	}
	for i := range a.Claims {
		err = firstOf(err, checkNames(a.Group, a.Claims[i].Rule.Name, a.Claims[i].Key))
		k.claims = append(k.claims, string(key(a.Group, a.Claims[i].Rule.Name, a.Claims[i].Key)))
	}
	return k, firstOf(err, checkNames(a.Group))
}

func firstOf(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// take executes an ask. It completes all steps that may fail before it changes anything.
func (t *txn) take(a *fleet.Ask, k names) error {
	a.Now = t.now
	now := a.Now.UnixMicro()
	last, err := t.lane(k.lane)
	if err != nil {
		return err
	}
	if last != nil && last.id == a.ID {
		a.Granted, a.Grants = last.granted, last.grants
		return nil
	}
	at := t.supply(a.Group)
	if err := a.Fits(now); err != nil {
		return err
	}
	cells := make(map[string]*fleet.Cell, len(k.settle)+len(k.claims))
	for _, name := range slices.Concat(k.settle, k.claims) {
		if cells[name], err = t.cell(name); err != nil {
			return err
		}
	}
	t.fleet.members(a.Group, now).Asked(now, a)
	t.decide(a, at, k, cells)
	t.put(t.lanes, k.lane, encodeAnswer(&answer{a.ID, now, a.Granted, a.Grants}))
	return nil
}

// lane returns the latest answer of a lane, or nil.
func (t *txn) lane(k []byte) (*answer, error) {
	v := t.lanes.Get(k)
	if v == nil {
		return nil, nil
	}
	return decodeAnswer(v)
}

func (t *txn) decide(a *fleet.Ask, at *fleet.Supply, k names, cells map[string]*fleet.Cell) {
	for i, name := range k.settle {
		cells[name].Settle(at, &a.Settle[i])
	}
	asked := make([]*fleet.Cell, 0, len(k.claims))
	for _, name := range k.claims {
		asked = append(asked, cells[name])
	}
	a.Answer(at, asked)
	for name, c := range cells {
		t.changed[name] = c
	}
}

// until returns the last instant at which data counts that is kept from now on, in microseconds.
func until(now time.Time, keep time.Duration) int64 {
	return now.UnixMicro() + keep.Microseconds()
}
