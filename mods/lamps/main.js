// Whoever uses a trapdoor lights the lamps around it, for ten seconds. A lamp that is off is black glass.

on("use", (event, land) => {
  if (!event.block.startsWith("trapdoor")) return;
  const lamps = land.find("black_glass");
  if (lamps.length === 0) land.tell(event.player, "Put black glass near the trapdoor, then use it again.");
  for (const pos of lamps) land.set(pos, "lamp");
  land.timer(event.pos, 10);
});

on("timer", (event, land) => {
  for (const pos of land.find("lamp")) land.set(pos, "black_glass");
});
