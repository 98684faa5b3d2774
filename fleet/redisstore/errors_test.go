package redisstore_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/redisstore"
	"github.com/seed1158cd35/weir/internal/test/servers"
)

const secret = "s3cr:t/p@ss w%rd"

func TestErrorsSayWhatToDo(t *testing.T) {
	locked, small, primary := servers.Redis(t, "--requirepass", secret), servers.Redis(t, "--maxmemory", "1"), servers.Redis(t)
	replica := servers.Replica(t, primary)
	half := servers.Redis(t, "--cluster-enabled", "yes")
	for _, c := range []struct{ url, want string }{
		{locked.URL(), "password"},
		{"redis://:wrong@" + locked.Addr(), "password"},
		{small.URL(), "maxmemory"},
		{replica.URL(), "primary"},
		{half.URL(), "CLUSTER INFO"},
		{"redis://127.0.0.1:1", "not connected"},
	} {
		conn, err := redisstore.Open(c.url, redisstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s := closing(t, conn)
		// On a machine that is busy for a second, the error is a timeout instead.
		eventually(t, c.want+" for "+c.url, func() bool {
			_, err := within(time.Second, func(ctx context.Context) error { return s.Take(ctx, ask(claim(bucketOf("b", 1, time.Hour, 9), 1))) })
			if err == nil || strings.Contains(err.Error(), "wrong@") {
				t.Fatalf("granted, or shown with a password: %v", err)
			}
			return strings.Contains(err.Error(), c.want)
		})
	}
}

// The error names the next step for every cause of a silent server.
func TestSilenceSaysWhereToLook(t *testing.T) {
	halted := servers.Redis(t)
	halted.Stop()
	defer halted.Cont()
	rude, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer rude.Close()
	go func() {
		for c, err := rude.Accept(); err == nil; c, err = rude.Accept() {
			_ = c.Close()
		}
	}()
	for url, want := range map[string]string{
		halted.URL():                      "a firewall drops",
		"redis://" + rude.Addr().String(): "closed the connection without a response",
		"redis://127.0.0.1:1":             "nothing listens at this address",
		"redis://nowhere.invalid":         "this host name does not exist",
	} {
		s := unconnected(t, url)
		eventually(t, want+" for "+url, func() bool {
			_, err := within(time.Second, func(ctx context.Context) error { return s.Take(ctx, ask(claim(bucketOf("b", 1, time.Hour, 9), 1))) })
			return err != nil && strings.Contains(err.Error(), want)
		})
	}
}

func TestPasswordOpens(t *testing.T) {
	srv := servers.Redis(t, "--requirepass", secret)
	conn, err := redisstore.Open(srv.URL(), redisstore.Options{Password: secret})
	if err != nil {
		t.Fatal(err)
	}
	if err := closing(t, conn).Init(t.Context(), group); err != nil {
		t.Error(err)
	}
}

// The permissions in the documentation are sufficient.
func TestUserWithNoMoreThanItNeeds(t *testing.T) {
	srv := servers.Redis(t)
	rights := "+evalsha +eval +time +get +set +setrange +pexpire +hmget +hset +hgetall +hdel +del +hello +ping +client +cluster"
	if _, err := srv.Do(append([]string{"ACL", "SETUSER", "fleet", "on", ">" + secret, "~{weir:*"}, strings.Fields(rights)...)...); err != nil {
		t.Fatal(err)
	}
	conn, err := redisstore.Open(srv.URL(), redisstore.Options{Username: "fleet", Password: secret})
	if err != nil {
		t.Fatal(err)
	}
	s := closing(t, conn)
	take(t, s, ask(claim(bucketOf("b", 1, time.Hour, 9), 1), claim(rollingOf("r", 1, time.Hour), 1)))
	if err := s.Init(t.Context(), group); err != nil {
		t.Error(err)
	}
	take(t, s, ask(claim(bucketOf("c", 1, time.Hour, 9), 1)))
	take(t, s, ask(claim(bucketOf("c", 1, time.Hour, 9), 1)))
	if _, err := s.Beat(t.Context(), &fleet.Beat{Group: group, Client: "me", Seq: 1, Silence: 1e6, Life: 6e7}); err != nil {
		t.Error(err)
	}
	if _, ok, err := s.Swap(t.Context(), group, fleet.Record{Name: "r", Keep: time.Hour}); err != nil || !ok {
		t.Error(ok, err)
	}
	if _, _, err := s.Load(t.Context(), group, []string{"r"}); err != nil {
		t.Error(err)
	}
	initialized(t, s, group)
	if n := granted(t, s, "new"); n != 1 {
		t.Errorf("granted %d of a group that is added, want 1", n)
	}
}

func TestAskThatCannotBeMeantIsRefusedHere(t *testing.T) {
	conn, err := redisstore.Open("redis://127.0.0.1:1", redisstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a := ask(claim(bucketOf("b", 1, time.Hour, 9), -1))
	if err := closing(t, conn).Take(t.Context(), a); err == nil || !strings.Contains(err.Error(), fleet.ErrAsk.Error()) {
		t.Errorf("got %v, want %v", err, fleet.ErrAsk)
	}
}
