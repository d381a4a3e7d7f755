package shards_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer/fleet/shards"
)

func TestBadConfigIsRefused(t *testing.T) {
	good := shards.Config{
		Client: clientset(t, &rest.Config{}).CoordinationV1(), Namespace: "fleet", Name: "test", Work: &replica{},
	}
	r, err := shards.New(good)
	require.NoError(t, err)
	require.NotEmpty(t, r.Identity())
	for want, spoil := range map[string]func(*shards.Config){
		"Client is missing":               func(c *shards.Config) { c.Client = nil },
		"Work is missing":                 func(c *shards.Config) { c.Work = nil },
		`Namespace ""`:                    func(c *shards.Config) { c.Namespace = "" },
		`Name "Test"`:                     func(c *shards.Config) { c.Name = "Test" },
		"more than 40 characters":         func(c *shards.Config) { c.Name = strings.Repeat("a", 41) },
		"LeaseDuration is 1.5s":           func(c *shards.Config) { c.LeaseDuration = 1500 * time.Millisecond },
		"LeaseDuration is -1s":            func(c *shards.Config) { c.LeaseDuration = -time.Second },
		"RenewDeadline is 15s":            func(c *shards.Config) { c.RenewDeadline = 15 * time.Second },
		"RetryPeriod is 6s":               func(c *shards.Config) { c.RetryPeriod = 6 * time.Second },
		"SettleTime is -1s":               func(c *shards.Config) { c.SettleTime = -time.Second },
		"shorter than LeaseDuration, whi": func(c *shards.Config) { c.LeaseDuration, c.RenewDeadline = 5*time.Second, 5*time.Second },
	} {
		c := good
		spoil(&c)
		_, err := shards.New(c)
		require.ErrorContains(t, err, want)
	}
}
