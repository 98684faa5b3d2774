package redisstore

import (
	"crypto/tls"
	"strings"
	"testing"
)

func TestURLThatIsWrongIsNotShown(t *testing.T) {
	for _, u := range []string{
		"", "hidden", "http://:hidden@host", "redis://:hid/den@host", "redis://user:hidden@host:port", "redis://:hidden@host/x/y",
		"redis://:hidden@host/zero", "redis://:hidden%zz@host", "redis://:hidden@host\n", "unix://:hidden@/tmp/redis.sock",
	} {
		c, err := Open(u, Options{})
		if err == nil {
			c.Close()
			t.Errorf("%q: no error", u)
			continue
		}
		if text := err.Error(); strings.Contains(text, "hid") || !strings.Contains(text, "redis://") {
			t.Errorf("%q: %v", u, err)
		}
	}
}

func TestURLsThatAreRight(t *testing.T) {
	for u, want := range map[string]string{
		"redis://h":                       "h:6379",
		"redis://u:p@h:1/2":               "h:1",
		"rediss://h:1":                    "h:1",
		"valkey://h:1":                    "h:1",
		"redis://a:1?addr=b:2":            "a:1 b:2",
		"redis://s:26379?master_set=main": "s:26379",
	} {
		opt, err := parse(u)
		if err != nil || strings.Join(opt.InitAddress, " ") != want {
			t.Errorf("%s: %v, %v; want %s", u, opt.InitAddress, err, want)
		}
		if strings.HasPrefix(u, "rediss:") != (opt.TLSConfig != nil) {
			t.Errorf("%s: TLS %v", u, opt.TLSConfig != nil)
		}
	}
}

func TestSettingsForTLSWantTLS(t *testing.T) {
	if c, err := Open("redis://h", Options{TLS: new(tls.Config)}); err == nil {
		c.Close()
		t.Error("settings for TLS were passed over")
	}
}

func TestOptionsGoBeforeTheURL(t *testing.T) {
	opt, err := parse("redis://a:b@h")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Username: "c", Password: "d"}
	o.apply(&opt, newDialer(o.timeout()))
	if opt.Username != "c" || opt.Password != "d" {
		t.Errorf("user %q, password %q", opt.Username, opt.Password)
	}
}
