package recordblob_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/seed1158cd35/weir/cascade/cache"
	"github.com/seed1158cd35/weir/cascade/cache/recordblob"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/dynamostore"
	"github.com/seed1158cd35/weir/fleet/filestore"
	"github.com/seed1158cd35/weir/fleet/redisstore"
	"github.com/seed1158cd35/weir/internal/test/servers"
)

func TestRedis(t *testing.T)  { conform(t, openRedis(t, servers.Redis(t).URL())) }
func TestDynamo(t *testing.T) { conform(t, openDynamo(t)) }
func TestMemory(t *testing.T) { conform(t, fleet.NewMemory(nil)) }
func TestFile(t *testing.T)   { conform(t, openFile(t)) }

func openRedis(t testing.TB, url string) fleet.Store {
	t.Helper()
	s, err := redisstore.Open(url, redisstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func openDynamo(t testing.TB) fleet.Store {
	t.Helper()
	client := dynamodb.New(dynamodb.Options{
		Region: "local", BaseEndpoint: aws.String(servers.Dynalite(t).Endpoint()),
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
	})
	s := dynamostore.New(client, "weir", dynamostore.Options{Margin: 2 * time.Millisecond})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.Create(ctx); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Load(ctx, "", nil); err != nil { // initializes the store's time
		t.Fatal(err)
	}
	return s
}

func openFile(t testing.TB) fleet.Store {
	t.Helper()
	s, err := filestore.Open(filepath.Join(t.TempDir(), "weir.db"), filestore.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func key(n int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// conform checks that a store meets the requirements of a cache.
func conform(t *testing.T, s fleet.Store) {
	b := recordblob.New(s, recordblob.Options{Places: 100})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	want := func(n int, want []byte) {
		t.Helper()
		if got, err := b.Get(ctx, key(n)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("key %d: %d bytes, %v; want %d", n, len(got), err, len(want))
		}
	}
	put := func(n int, v []byte, keep time.Duration) {
		t.Helper()
		if err := b.Put(ctx, key(n), v, keep); err != nil {
			t.Error(err)
		}
	}
	want(1, nil)
	large := make([]byte, b.Most())
	for i := range large {
		large[i] = byte(rand.Uint32())
	}
	put(1, []byte("one"), time.Hour)
	put(2, large, time.Hour)
	want(1, []byte("one"))
	want(2, large)
	put(1, large, time.Hour) // once more
	want(1, large)
	put(101, []byte("in the place of 1"), time.Hour)
	want(1, []byte("in the place of 1"))
	for n, first := range []bool{true, false} {
		if got, err := b.Lock(ctx, key(7), time.Hour); err != nil || got != first {
			t.Errorf("lock %d: %v, %v", n, got, err)
		}
	}
	if got, err := b.Lock(ctx, key(107), time.Hour); err != nil || !got {
		t.Errorf("lock of another key of the place: %v, %v", got, err)
	}
	wantFleet(t, ctx, s)
}

// wantFleet checks that one process finds the values of another, and that an overwritten value is not returned for its
// old key.
func wantFleet(t *testing.T, ctx context.Context, s fleet.Store) {
	open := func() *cache.Cache {
		c, err := cache.New(cache.Options{Shared: recordblob.New(s, recordblob.Options{Places: 16, Group: "small"}), SharedTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	a, b := open(), open()
	defer b.Close()
	keys := make([]cache.Key, 60)
	for i := range keys {
		keys[i] = cache.Key{Tenant: fmt.Sprint(i), Model: "m"}
		a.Put(time.Now(), keys[i], cache.Entry{Status: 200, Body: []byte(strings.Repeat(fmt.Sprint(i, " "), 1000))})
	}
	if err := a.Close(); err != nil { // waits for the writes
		t.Error(err)
	}
	found := 0
	for i, k := range keys {
		e, state, _ := b.Get(ctx, time.Now(), k)
		if state == cache.Hit {
			found++
		}
		if want := strings.Repeat(fmt.Sprint(i, " "), 1000); state != cache.Miss && string(e.Body) != want {
			t.Errorf("key %d: %v, %.20q", i, state, e.Body)
		}
	}
	if n := b.Stats(); found < 8 || found > 16 || n.SharedErrors != 0 || n.SharedHits != int64(found) || n.SharedDamaged != int64(60-found) {
		t.Errorf("%d found in 16 places, %+v", found, n)
	}
}

func TestRedisThatGoesAwayAndComesBack(t *testing.T) {
	srv := servers.Redis(t)
	blobs := recordblob.New(openRedis(t, srv.URL()), recordblob.Options{})
	k := cache.Key{Tenant: "t"}
	writes, err := cache.New(cache.Options{Shared: blobs, WriteTimeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	writes.Put(time.Now(), k, cache.Entry{Status: 200})
	if err := writes.Close(); err != nil { // waits for the write
		t.Fatal(err)
	}
	c, err := cache.New(cache.Options{Shared: blobs, SharedTimeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	get := func() (cache.State, time.Duration) {
		start := time.Now()
		_, s, _ := c.Get(t.Context(), start, k)
		return s, time.Since(start)
	}
	for deadline := time.Now().Add(20 * time.Second); c.Stats().SharedHits == 0; c.Forget(k) {
		if get(); time.Now().After(deadline) {
			t.Fatal("the answer is not in the store")
		}
	}
	srv.Stop() // it hangs
	c.Forget(k)
	// The time of each call also depends on the machine. The shortest of the calls that wait for the store takes the
	// full timeout.
	begun, before, waited := time.Now(), c.Stats(), time.Minute
	for range 200 {
		s, took := get()
		if s != cache.Miss {
			t.Errorf("%v of a store that hangs", s)
		}
		if took > 50*time.Millisecond {
			waited = min(waited, took)
		}
	}
	n, probes := c.Stats().SharedErrors-before.SharedErrors, 1+int64(time.Since(begun)/time.Second) // at least a second apart
	if n < 1 || n > 3+probes || waited > 400*time.Millisecond {
		t.Errorf("%d calls have waited for a server that hangs, %v at least", n, waited)
	}
	srv.Cont()
	for deadline := time.Now().Add(time.Minute); ; c.Forget(k) {
		if s, _ := get(); s == cache.Hit {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the store is back and not used")
		}
	}
}

// BenchmarkRedis measures a Get that is not in memory, and a write.
func BenchmarkRedis(b *testing.B) {
	blobs := recordblob.New(openRedis(b, servers.Redis(b).URL()), recordblob.Options{})
	value := bytes.Repeat([]byte("x"), 4096)
	b.Run("put", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if err := blobs.Put(b.Context(), key(i), value, time.Hour); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("get", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if _, err := blobs.Get(b.Context(), key(i)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
