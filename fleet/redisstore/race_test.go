//go:build race

package redisstore_test

func init() { raceEnabled = true }
