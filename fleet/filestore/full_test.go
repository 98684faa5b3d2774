package filestore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/filestore"
)

// fill takes one unit each of slow and of a new key until an error occurs.
func fill(s *filestore.Store, from, n int) (granted int64, err error) {
	for i := range n {
		k := claim(time.Now(), quota, 1)
		k.Key = fmt.Sprint(from+i, strings.Repeat("k", 200))
		a := &fleet.Ask{Group: "g", ID: uint64(from + i + 1), Lane: uint64(from + i), Copies: 1, Claims: []fleet.Claim{claim(time.Now(), slow, 1), k}}
		if err := s.Take(context.Background(), a); err != nil {
			return granted, err
		}
		granted += a.Granted
	}
	return granted, nil
}

// The store grants nothing that it could not write, earlier grants stay, and it recovers when there is space again.
func TestAFullFileIsAnError(t *testing.T) {
	path, o := file(t), quick
	o.MaxSize = 256 << 10
	s := open(t, path, o)
	granted, err := fill(s, 0, 100_000)
	if !errors.Is(err, filestore.ErrFull) || !strings.Contains(err.Error(), path) {
		t.Fatalf("got %v, want ErrFull with the file", err)
	}
	if _, err := fill(s, 100_000, 1); !errors.Is(err, filestore.ErrFull) {
		t.Errorf("got %v, want ErrFull again", err)
	}
	if _, _, err := s.Load(context.Background(), "g", []string{"r"}); err != nil {
		t.Errorf("nothing can be read: %v", err)
	}
	closed(t, s)
	s = open(t, path, quick)
	if got := 1_000_000 - left(t, s, slow); got != granted {
		t.Errorf("the file counts %d, %d were granted", got, granted)
	}
	if _, err := fill(s, 200_000, 100); err != nil {
		t.Errorf("with room again: %v", err)
	}
}
