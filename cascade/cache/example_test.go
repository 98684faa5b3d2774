package cache_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/seed1158cd35/weir/cascade/cache"
)

func Example() {
	c, err := cache.New(cache.Options{TTL: time.Hour, StaleWhileRevalidate: 10 * time.Minute})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	key := cache.Key{Tenant: "shop", Route: "/v1/chat/completions", Model: "small", Hash: sha256.Sum256([]byte("do you ship to Japan?"))}
	morning := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	c.Put(morning, key, cache.Entry{Status: 200, Body: []byte("Yes, we do.")})

	for _, later := range []time.Duration{time.Minute, 65 * time.Minute, 5 * time.Hour, 48 * time.Hour} {
		e, state, age := c.Get(context.Background(), morning.Add(later), key)
		fmt.Printf("%v %v %q\n", state, age, e.Body)
	}
	key.Tenant = "another shop"
	_, state, _ := c.Get(context.Background(), morning, key)
	fmt.Println(state)
	// Output:
	// hit 1m0s "Yes, we do."
	// stale 1h5m0s "Yes, we do."
	// old 5h0m0s "Yes, we do."
	// miss 0s ""
	// miss
}

func ExampleCache_Refresh() {
	renewed := make(chan struct{})
	c, err := cache.New(cache.Options{})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	key := cache.Key{Tenant: "shop"}
	c.Put(time.Now(), key, cache.Entry{Status: 200, Body: []byte("old"), Stored: time.Now().Add(-65 * time.Minute)})

	e, state, _ := c.Get(context.Background(), time.Now(), key)
	fmt.Printf("%v %q\n", state, e.Body)
	ask := func(context.Context) (cache.Entry, error) {
		defer close(renewed)
		return cache.Entry{Status: 200, Body: []byte("new")}, nil
	}
	fmt.Println("started:", c.Refresh(key, ask))
	<-renewed
	// Output:
	// stale "old"
	// started: true
}

func ExampleStorable() {
	fmt.Println(cache.Storable(cache.Answer{Status: 200, Complete: true}))
	fmt.Println(cache.Storable(cache.Answer{Status: 429, Complete: true}))
	fmt.Println(cache.Storable(cache.Answer{Status: 200}))
	// Output:
	// <nil>
	// its status is not 200
	// it is incomplete
}
