package cache

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A panic of a listener must not have any effect, especially on a background goroutine, where it would end the process.
func TestListenersThatPanicFailNothing(t *testing.T) {
	far := newShelf()
	heard := 0
	bubble(t, Options{Shared: far, Events: Events{
		RefreshFailed: func(Key, error) { heard++; panic("a listener") },
		SharedFailed:  func(string, error) { heard++; panic("a listener") },
	}}, func(t *testing.T, c *Cache) {
		far.set(func() { far.fail = errShelf })
		if _, s, _ := c.Get(context.Background(), time.Now(), question(1)); s != Miss {
			t.Errorf("the state is %v", s)
		}
		if !c.Refresh(question(2), func(context.Context) (Entry, error) { return Entry{}, errors.New("no answer") }) {
			t.Fatal("no refresh was begun")
		}
		c.wg.Wait()
		time.Sleep(2 * mostPause) // in virtual time
		if !c.Refresh(question(2), func(context.Context) (Entry, error) { return text("ok"), nil }) {
			t.Error("a refresh whose failure was heard of never ends")
		}
		c.wg.Wait()
		if heard < 2 {
			t.Errorf("%d events were heard", heard)
		}
	})
}
