# SPDX-License-Identifier: Apache-2.0
defmodule Shop do
  use Application

  # sderl was started before and has waited for the group: the name can be registered now.
  def start(_type, _args) do
    children = [{Shop.Counter, name: name(node())}]
    Supervisor.start_link(children, strategy: :one_for_one)
  end

  # From any node of the group.
  def next(node), do: GenServer.call(name(node), :next)

  defp name(node), do: {:via, :s_group, {:shop, {:counter, node}}}
end

defmodule Shop.Counter do
  use GenServer

  def start_link(opts), do: GenServer.start_link(__MODULE__, [], opts)

  @impl true
  def init([]), do: {:ok, 1}

  @impl true
  def handle_call(:next, _from, n), do: {:reply, n, n + 1}
end
