package redisstore_test

import (
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/servers"
)

// shortened truncates or extends the stored value of each limit to a number of bytes.
const shortened = `for _, key in ipairs(redis.call('KEYS', '*k:k*')) do
	local all = redis.call('HGETALL', key)
	for i = 1, #all, 2 do
		redis.call('HSET', key, all[i], (all[i + 1]:sub(1, tonumber(ARGV[1])) .. ARGV[2]))
	end
end
return 'done'`

// A bucket that was stored before holds existed, or without a hold, counts as before.
func TestABucketWithoutAHoldIsRead(t *testing.T) {
	server := servers.Redis(t)
	s, _, advance := drivenOn(t, server)
	for _, c := range []struct{ name, keep, add string }{
		{"before", "61", ""}, {"not a number", "61", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"},
		{"below nothing", "61", "\x00\x00\x00\x00\x00\x00\xf0\xbf\x00\x00\x00\x00\x00\x00\xf0\xbf"},
	} {
		server.FlushAll()
		if err := s.Init(t.Context(), group); err != nil {
			t.Fatal(err)
		}
		b := bucketOf("b", 10, time.Second, 10)
		b.Hold = 100_000
		b.Meter.Cap -= b.Hold * b.Meter.Drain
		a := ask(claim(b, 1))
		if a.Copies = 8; take(t, s, a).Granted != 8 {
			t.Fatalf("%s: granted %d of 9", c.name, a.Granted)
		}
		if _, err := server.Do("EVAL", shortened, "0", c.keep, c.add); err != nil {
			t.Fatal(err)
		}
		if n := left(t, s, claim(b, 1)); n != 1 {
			t.Errorf("%s: %d left of 9 after 8", c.name, n)
		}
		advance(100 * time.Millisecond)
		a = ask(claim(b, 1))
		if a.Copies = 8; take(t, s, a).Granted != 2 {
			t.Errorf("%s: %d granted after a tenth of a second, want 2", c.name, a.Granted)
		}
		if g := take(t, s, ask(claim(b, 0))).Grants[0]; g.Wait != 0 || g.Left != 0 || g.Reset <= 0 || g.Reset > time.Second {
			t.Errorf("%s: %+v", c.name, g)
		}
	}
}
