package dq

import (
	"strings"

	"github.com/redis/go-redis/v9"
)

// place is where a key is. It is equal for two keys if one connection can wait for both.
type place struct {
	client                  redis.UniversalClient
	network, address, shard string
	db                      int
	user                    string
}

func placeOf(client redis.UniversalClient, key string) place {
	switch client := client.(type) {
	case *redis.ClusterClient:
		return place{client: client, shard: hashTag(key)}
	case *redis.Client:
		// With Sentinel, Addr is not the server's address.
		if o := client.Options(); strings.HasPrefix(o.Addr, "/") || strings.Contains(o.Addr, ":") {
			return place{network: o.Network, address: o.Addr, db: o.DB, user: o.Username}
		}
	}
	return place{client: client}
}

// hashTag returns the part of a key that decides its hash slot.
func hashTag(key string) string {
	if _, rest, found := strings.Cut(key, "{"); found {
		if tag, _, closed := strings.Cut(rest, "}"); closed && tag != "" {
			return tag
		}
	}
	return key
}

// jobKey names a job on one server.
type jobKey struct{ queue, id string }
