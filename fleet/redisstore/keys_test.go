package redisstore_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/redisstore"
	"github.com/seed1158cd35/weir/internal/test/servers"
)

func TestKeysExpireNoSoonerThanTheyAreFull(t *testing.T) {
	srv := servers.Redis(t)
	s := open(t, srv.URL())
	if err := s.Init(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for i := range 40 {
		per := time.Duration(rand.Int64N(int64(100 * time.Hour)))
		b := bucketOf("b", 1+rand.Int64N(100), per, 1+rand.Int64N(1000))
		r := rollingOf("r", 100, per)
		q := quota(fixedOf("q", 100), 1+rand.Int64N(50), now, max(per, time.Hour))
		claims := []fleet.Claim{claim(b, 1), claim(r, 1), q}
		rand.Shuffle(3, func(i, j int) { claims[i], claims[j] = claims[j], claims[i] })
		key := fmt.Sprint("k", i)
		for j := range claims {
			claims[j].Key = key
		}
		var longest time.Duration
		for j := range claims {
			a := ask(claims[j])
			a.Settle = []fleet.Settlement{{Rule: b, Key: key, Owe: rand.Int64N(100)}, {Rule: b, Key: key, Pause: time.Duration(rand.Int64N(int64(200 * time.Hour)))}}
			take(t, s, a)
			longest = max(longest, a.Grants[0].Reset, a.Settle[1].Pause)
		}
		owes := ask(fleet.Claim{Rule: b, Key: key})
		take(t, s, owes) // includes the debt that was settled after the bucket's own claim
		longest = max(longest, owes.Grants[0].Reset)
		text, err := srv.Do("PTTL", "{weir:api}k:"+key)
		if err != nil {
			t.Fatal(err)
		}
		ms, _ := strconv.ParseInt(text, 10, 64)
		ttl := time.Duration(ms) * time.Millisecond
		if ttl < longest-time.Since(now) || ttl > 40*longest+time.Hour {
			t.Errorf("key %d: expires in %v, everything is there in %v: %+v", i, ttl, longest, claims)
		}
	}
}

// A read of an unused rolling limit stores nothing, nor does a refusal.
func TestALookLeavesNoKeyBehind(t *testing.T) {
	srv := servers.Redis(t)
	s := open(t, srv.URL())
	if err := s.Init(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	r := rollingOf("r", 100, time.Minute)
	r.Hold = 100_000
	left(t, s, claim(r, 1))
	take(t, s, ask(claim(r, 101)))
	if n, err := srv.Do("EXISTS", "{weir:api}k:k"); err != nil || n != "0" {
		t.Errorf("%s keys after a look, want none (%v)", n, err)
	}
	take(t, s, ask(claim(r, 1)))
	if n, err := srv.Do("EXISTS", "{weir:api}k:k"); err != nil || n != "1" {
		t.Errorf("%s keys after a grant, want one (%v)", n, err)
	}
}

func TestEveryKeyButTheMarkExpires(t *testing.T) {
	srv := servers.Redis(t)
	s := open(t, srv.URL())
	take(t, s, ask(claim(bucketOf("b", 1, time.Hour, 10), 1)))
	if err := s.Init(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	take(t, s, ask(claim(bucketOf("c", 1, time.Hour, 10), 1)))
	if _, _, err := s.Swap(t.Context(), group, fleet.Record{Name: "r", Keep: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Beat(t.Context(), &fleet.Beat{Group: group, Client: "me", Seq: 1, Silence: 1e6, Life: 6e7}); err != nil {
		t.Fatal(err)
	}
	all := strings.Split(srv.Keys(), "\n")
	if len(all) != 5 {
		t.Errorf("keys %q, want 5", all)
	}
	for _, key := range all {
		ttl, err := srv.Do("PTTL", key)
		if err != nil || (ttl == "-1") != (key == "{weir:api}") {
			t.Errorf("%q expires in %s ms, %v", key, ttl, err)
		}
	}
}

func TestPrefixesAreApart(t *testing.T) {
	srv := servers.Redis(t)
	b := claim(bucketOf("b", 1, time.Hour, 100), 1)
	for i, prefix := range []string{"", "one", "two", "o}ne", "{", "one:api"} {
		s, err := redisstore.Open(srv.URL(), redisstore.Options{Prefix: prefix})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if err := s.Init(t.Context(), group); err != nil {
			t.Fatal(err)
		}
		if got := left(t, s, b); got != 100 {
			t.Errorf("prefix %q: %d left, want 100", prefix, got)
		}
		a := ask(b)
		a.Copies = int64(i) + 1
		take(t, s, a)
	}
}

func TestManyClaimsAndSettlements(t *testing.T) {
	s := startFull(open(t, servers.Redis(t).URL()))
	a := ask()
	for i := range 300 {
		r := bucketOf(fmt.Sprint("b", i%60), 1, time.Hour, 1000)
		key := fmt.Sprint("k", i/60)
		a.Claims = append(a.Claims, fleet.Claim{Rule: r, Key: key, Cost: int64(i)})
		a.Settle = append(a.Settle, fleet.Settlement{Rule: r, Key: key, Owe: 1})
	}
	take(t, s, a)
	for i, g := range a.Grants {
		if g.Left != 999-int64(i) {
			t.Fatalf("claim %d: %d left, want %d", i, g.Left, 999-i)
		}
	}
}
