// Package play plays stories in virtual time: callers, a machine that they call, and trouble. The callers call the
// machine directly, with the retries of SDKs, and through weir with the policy of a configuration file. weir's part
// is the shipped code: breaker, limits, queues, concurrency bound, retries and retry budget. The machine and the
// callers are models.
//
// weir sim and weir-demo use this package. It opens no files and no connections.
package play
