package fleet

import (
	"errors"
	"fmt"
)

var (
	// ErrClusterExists says that a cluster of that name was added and not removed.
	ErrClusterExists = errors.New("the cluster is in the fleet already")
	// ErrNoCluster says that no cluster of that name is in the fleet.
	ErrNoCluster = errors.New("no such cluster")
	// ErrNoUnit says that the fleet has no such unit: its cluster was not added, or it has no such
	// group or shard.
	ErrNoUnit = errors.New("the fleet has no such unit")
	// ErrUnitRunning says that the unit is followed already.
	ErrUnitRunning = errors.New("the unit is followed already")
	// ErrRemoved says that the cluster was removed meanwhile.
	ErrRemoved = errors.New("the cluster was removed")
)

// ClusterError says why a cluster could not be added or updated. Its cause is ErrClusterExists,
// ErrNoCluster, a *factory.ServerConflictError, or what is wrong with the name or the configuration.
type ClusterError struct {
	// Cluster is the name.
	Cluster string
	// Err is the cause.
	Err error
}

func (e *ClusterError) Error() string { return fmt.Sprintf("cluster %q: %v", e.Cluster, e.Err) }

// Unwrap returns the cause.
func (e *ClusterError) Unwrap() error { return e.Err }

// UnitError says why a unit is not followed. Its cause is ErrNoUnit, ErrUnitRunning or ErrRemoved;
// or, in the status of a cluster, an error of Config.Known.
type UnitError struct {
	// Unit is the unit.
	Unit Unit
	// Err is the cause.
	Err error
}

func (e *UnitError) Error() string { return fmt.Sprintf("unit %v: %v", e.Unit, e.Err) }

// Unwrap returns the cause.
func (e *UnitError) Unwrap() error { return e.Err }

// TargetError says why a target has no informer, or why its objects are not told deleted although the
// server does not serve the resource.
type TargetError struct {
	// Target is the target.
	Target Target
	// Err is what Configure has returned, a *informer.PanicError, or what is wrong with the
	// configuration; or informer.ErrClusterReplaced.
	Err error
}

func (e *TargetError) Error() string { return fmt.Sprintf("%v: %v", e.Target, e.Err) }

// Unwrap returns the cause.
func (e *TargetError) Unwrap() error { return e.Err }
