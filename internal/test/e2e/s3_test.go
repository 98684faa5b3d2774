package e2e

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit/adaptive"
)

// trueLimit is the store's limit per second. It is low, so that it limits the workers and not the machine.
const trueLimit = 100

// Unusual keys, bodies with and without a length, and errors pass unchanged.
func TestEveryKindOfCall(t *testing.T) {
	t.Parallel()
	s := newStore(t, 0, 1)
	address, _ := through(t, s, policy(10_000, adaptive.Config{}))
	c := newClient(t, address)
	makeBucket(t, c)
	bucket := aws.String(bucketName)
	body := make([]byte, 3<<20)
	for i := range body {
		body[i] = byte(rand.Uint32())
	}
	for _, key := range []string{"a", "a b", "a+b", "a%2Fb", "a/b/c", "ü", "a~b!'()*", "a=b&c;d", "a:b@c", "a|b\"c", "[a]{b}"} {
		_, err := c.PutObject(t.Context(), &s3.PutObjectInput{Bucket: bucket, Key: &key, Body: bytes.NewReader(body[:len(key)*1000])})
		if err != nil {
			t.Errorf("put %q: %v", key, err)
			continue
		}
		check(t, c, key, body[:len(key)*1000])
	}
	key := "large"
	for _, in := range []io.Reader{bytes.NewReader(body), strings.NewReader("")} {
		want, _ := io.ReadAll(in)
		if _, err := c.PutObject(t.Context(), &s3.PutObjectInput{Bucket: bucket, Key: &key, Body: bytes.NewReader(want)}); err != nil {
			t.Errorf("put %d bytes: %v", len(want), err)
		}
		check(t, c, key, want)
	}
	key = "not there"
	_, err := c.GetObject(t.Context(), &s3.GetObjectInput{Bucket: bucket, Key: &key})
	if gone, ok := errors.AsType[*types.NoSuchKey](err); !ok {
		t.Errorf("get what is not there: %v, %v", gone, err)
	}
	if _, err := c.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: bucket, Key: &key}); err == nil {
		t.Error("head what is not there: no error")
	}
}

func check(t *testing.T, c *s3.Client, key string, want []byte) {
	t.Helper()
	out, err := c.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String(bucketName), Key: &key})
	if err != nil {
		t.Errorf("get %q: %v", key, err)
		return
	}
	defer out.Body.Close()
	if got, err := io.ReadAll(out.Body); err != nil || !bytes.Equal(got, want) {
		t.Errorf("get %q: %d bytes, %v; want the %d that were put", key, len(got), err, len(want))
	}
}

// 32 workers need twice the store's limit. With this limit configured, every call succeeds through weir and the store refuses
// none.
func TestToldTheLimit(t *testing.T) {
	t.Parallel()
	inBubble(t, trueLimit, policy(trueLimit, adaptive.Config{}), func(t *testing.T, w *play) {
		results := load{32, 2 * trueLimit}.run(t, w.store, w.client, 6*time.Second)
		if ok, all, err := good(results, 0, time.Hour); ok != all {
			t.Errorf("%d of %d calls succeeded; one failed with %v", ok, all, err)
		}
		seen := w.between(time.Second, 6*time.Second)
		if used := float64(seen.Taken) / (5 * trueLimit); seen.Refused > 0 || used < 0.98 {
			t.Errorf("used %.1f%% of the limit, want 98%%; refused %d, want none\n%s", 100*used, seen.Refused, w.trace())
		}
	})
}

// weir starts at three times the unknown limit and learns it.
func TestFindsTheLimit(t *testing.T) {
	t.Parallel()
	// Rates that are multiplied vary between half of the limit and the limit.
	for rule, least := range map[adaptive.Rule]float64{adaptive.Cubic: 0.95, adaptive.Multiply: 0.75} {
		t.Run(rule.String(), func(t *testing.T) {
			t.Parallel()
			inBubble(t, trueLimit, policy(3*trueLimit, adaptive.Config{On: true, Rule: rule}), func(t *testing.T, w *play) {
				results := load{32, 4 * trueLimit}.run(t, w.store, w.client, 66*time.Second)
				seen := w.between(30*time.Second, 66*time.Second) // some cycles of the rule
				used := float64(seen.Taken) / (36 * trueLimit)
				ok, all, err := good(results, 30*time.Second, 66*time.Second)
				t.Logf("from the 30th second on: used %.1f%% of the limit, refused %.2f%%; %d of %d calls succeeded (%v)", 100*used, 100*seen.refusedShare(), ok, all, err)
				if used < least || seen.refusedShare() > 0.01 || ok != all {
					t.Errorf("used %.1f%% of the limit, want %.0f%%; refused %.2f%%, want at most 1%%\n%v\n%s", 100*used, 100*least, 100*seen.refusedShare(), w.learnt, w.trace())
				}
			})
		})
	}
}

// The store is down for ten seconds. Five seconds after its end all calls succeed. After the breaker has seen five seconds of
// failures, the store gets few calls.
func TestOutage(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]weir.Policy{
		"told":     policy(trueLimit, adaptive.Config{}),
		"learning": policy(3*trueLimit, adaptive.Config{On: true}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, trueLimit, p, func(t *testing.T, w *play) {
				const begin, end, until = 4 * time.Second, 14 * time.Second, 24 * time.Second
				time.AfterFunc(begin-w.now(), func() { w.outage(true) })
				time.AfterFunc(end-w.now(), func() { w.outage(false) })
				results := load{32, 2 * trueLimit}.run(t, w.store, w.client, until)
				ok, all, err := good(results, end+5*time.Second, until)
				seen, harm := w.between(end+5*time.Second, until), w.between(begin+7*time.Second, end).Broken
				t.Logf("5s after the outage: %d of %d calls good, refused %.2f%%; during it the store got %d requests", ok, all, 100*seen.refusedShare(), harm)
				if all < 4*trueLimit || float64(ok) < 0.99*float64(all) || harm > 20 {
					t.Errorf("want 99%%, and at most 20 requests; one failed with %v\n%v\n%s", err, w.learnt, w.trace())
				}
			})
		})
	}
}
